// Sequences for a model: lines of text, or records with ids.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/open_model.hpp"
#include "commands/text_stream.hpp"
#include "probe/score/sentence.hpp"
#include "probe/score/sequence.hpp"

namespace masque::commands {

struct SequenceOptions {
  StreamOptions stream;
  std::optional<std::string> records;
  bool no_special = false;
  bool skip_long = false;   ///< of commands that declare it: add_skip_long
  bool skip_empty = false;  ///< text without a token is left out; else it is refused
};

/// --records, --no-special and the options of the stream.
void add_sequences(cli::Command& command, SequenceOptions& options);

/// --skip-long: text that is longer than the model has positions is left out, and a note tells how
/// many lines; else it is an error.
void add_skip_long(cli::Command& command, SequenceOptions& options);

/// Before the model is opened: refuses options that do not fit each other (UsageError), and shows
/// help where text is needed and standard input is a terminal.
void check_sequences(const SequenceOptions& options, const cli::Command& command);

/// A text as the model gets it: with the mask that its words make, where the model's leaves them to
/// each text.
probe::Sequence sequence_of(probe::Sentence sentence, std::uint64_t number,
                            const OpenedModel& opened);

/// What is done with sequences; `flush` and `enough` as LineWork has them.
struct SequenceWork {
  /// A sequence and its text, which those of --records lack.
  std::function<void(probe::Sequence&& sequence, std::string_view text)> use;
  std::function<void()> flush = [] {};
  std::function<bool()> enough = {};
};

/// Calls work.use for each sequence of --records or of standard input, in order. The model can take
/// every one: its ids, segments, positions and length are looked at, a sequence without ids is
/// refused (InputError that names the line). Returns what the command ends with. Memory: a
/// sequence.
cli::ExitCode each_sequence(const SequenceOptions& options, const OpenedModel& opened,
                            const cli::Command& command, const SequenceWork& work,
                            cli::Session& session);

/// The same as a list. `code` becomes what the command ends with.
std::vector<probe::Sequence> read_sequences(const SequenceOptions& options,
                                            const OpenedModel& opened, const cli::Command& command,
                                            cli::ExitCode& code, cli::Session& session);

}  // namespace masque::commands
