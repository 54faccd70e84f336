// Sequences for a model: lines of text, or records with ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/text_stream.hpp"
#include "probe/sequence.hpp"

namespace masque::engine {

struct SequenceOptions {
  StreamOptions stream;
  std::optional<std::string> records;
  bool no_special = false;
};

/// --records, --no-special and the options of the stream.
void add_sequences(cli::Command& command, SequenceOptions& options);

/// Before the model is opened: refuses options that do not fit each other (UsageError), and shows
/// help where text is needed and standard input is a terminal.
void check_sequences(const SequenceOptions& options, const cli::Command& command);

/// All sequences of --records or of standard input. The model can take every one: its ids,
/// segments, positions and length are looked at, a sequence without ids is refused (InputError that
/// names the line). `code` becomes what the command ends with.
std::vector<probe::Sequence> read_sequences(const SequenceOptions& options, const Engine& engine,
                                            const cli::Command& command, cli::ExitCode& code,
                                            cli::Session& session);

}  // namespace masque::engine
