// Sequences for a model: lines of text, or records with ids.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/begin_token.hpp"
#include "commands/open_model.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/sentence.hpp"
#include "evaluate/score/sequence.hpp"
#include "records/record.hpp"

namespace masque::commands {

/// What becomes of lines that cannot be processed.
enum class SequencePolicy {
  kError,     ///< they are refused
  kSkip,      ///< they are left out, as BadLines::kSkip says
  kTruncate,  ///< text with more tokens than the model has positions loses the last; others: kError
};

/// Where sequences come from.
struct SequenceOptions {
  StreamOptions stream;  ///< of text; its shard, first_record and max_line of records, too
  std::optional<std::string> records;  ///< a path of JSON lines ("-": standard input); none: text
  bool no_special = false;             ///< text without the tokens of the tokenizer's template
  BeginOptions begin;                  ///< the token in front of text; by default begins_texts()
  SequencePolicy policy = SequencePolicy::kError;  ///< besides the policy of the stream
  bool skip_empty = false;  ///< text without a token is left out; else it is refused
};

/// Declares what --pairs does where sequences are read.
inline constexpr std::string_view kPairsHelp =
    "each line is a source and its target, separated by a tab, for an encoder–decoder; without it "
    "the encoder alone is run";

/// The two texts of `line`, separated by a tab. Throws InputError (message only) for a line without
/// two columns.
std::pair<std::string_view, std::string_view> pair_columns(std::string_view line);

/// The `line` of a source and a target as the model of `opened`, an encoder–decoder, gets it:
/// encode_target_sentence() with `options`. Throws as that and pair_columns() do, and InputError
/// (message only) for a source beyond the positions of the encoder.
evaluate::Sentence encode_target_line(std::string_view line, const OpenedModel& opened,
                                      const evaluate::SentenceOptions& options);

/// encode_target_line() of `line`, `opened` and `options` as the decoder reads it to predict each
/// token of the target: all tokens but the last. Throws as that.
evaluate::Sentence encode_decoder_line(std::string_view line, const OpenedModel& opened,
                                       const evaluate::SentenceOptions& options);

/// How a model of `design` numbers the positions of records.
records::PositionRule position_rule(const model::Design& design);

/// Declares --records, --no-special, --bos, --no-bos and the options of the stream of `command`,
/// with `options` as their targets. Without `masks` the help does not offer records with masks: the
/// command refuses them.
void add_sequences(cli::Command& command, SequenceOptions& options, bool masks = true);

/// Declares --policy of `command`, with `policy` as its target.
void add_sequence_policy(cli::Command& command, SequencePolicy& policy);
/// Cuts `sentence` to `limit` tokens (0: any number) at the end of its text and adds it to
/// `shortened`, if `policy` says so. Returns why it cannot be read, or nothing.
std::optional<std::string> fit(evaluate::Sentence& sentence, Index limit, SequencePolicy policy,
                               evaluate::ShortenedTexts& shortened);

/// Before the model is opened: throws UsageError for `options` that do not fit each other, and
/// where standard input is to be read and is a terminal; the message names the --help of `command`.
void check_sequences(const SequenceOptions& options, const cli::Command& command);

/// `sentence`, of the line `number` (from 0), as the model of `opened` gets it: with the mask that
/// its words make, where the model's leaves them to each text. Throws as OpenedModel::mask_of.
evaluate::Sequence sequence_of(evaluate::Sentence sentence, std::uint64_t number,
                               const OpenedModel& opened);

/// How text becomes sentences for the model of `opened`, which has a tokenizer, as `options` say;
/// tells on `session` what stands in front. Throws as begin_token_of.
evaluate::SentenceOptions sentence_options(const SequenceOptions& options,
                                           const OpenedModel& opened, cli::Session& session);

/// The options of text that change numbers, as members of a result: bos, no_bos, no_special,
/// policy and those of given_input.
std::vector<Given> given_sequences(const SequenceOptions& options);

/// What is done with sequences.
struct SequenceWork {
  /// A sequence and its text, which those of --records lack.
  std::function<void(evaluate::Sequence&& sequence, std::string_view text)> use;
  /// As LineWork::flush.
  std::function<void()> flush = [] {};
  /// As LineWork::enough.
  std::function<bool()> enough = {};
  /// As LineWork::part.
  InputPart* part = nullptr;
};

/// Calls work.use for each sequence of --records or of standard input, as `options` say, in order.
/// The model of `opened` can take every one: its ids, segments, positions and length are looked at,
/// a sequence without ids is refused (InputError that names the line). Text needs a tokenizer in
/// `opened`. `command` is for the message about a terminal, `session` for progress and notes.
/// Returns what the command ends with: 3 if lines were left out that are not UTF-8. Memory: a
/// sequence.
cli::ExitCode each_sequence(const SequenceOptions& options, const OpenedModel& opened,
                            const cli::Command& command, const SequenceWork& work,
                            cli::Session& session);

/// The sequences of each_sequence as a list; `options`, `opened`, `command` and `session` as there.
/// `code` becomes what the command ends with.
std::vector<evaluate::Sequence> read_sequences(const SequenceOptions& options,
                                               const OpenedModel& opened,
                                               const cli::Command& command, cli::ExitCode& code,
                                               cli::Session& session);

}  // namespace masque::commands
