// How text is scored: what the commands that give log-probabilities share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/begin_token.hpp"
#include "commands/open_model.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/score/text_scorer.hpp"

namespace masque::commands {

/// How lines are scored.
struct ScoringOptions {
  std::optional<evaluate::ScoreKind> kind;  ///< none: by the model's head
  /// What stands for kPll where no kind is given.
  evaluate::ScoreKind masked_kind = evaluate::ScoreKind::kPll;
  std::optional<std::string> policy;       ///< none: "error"
  std::optional<std::int64_t> max_length;  ///< tokens read at once; none: the model's
  BeginOptions begin;                      ///< the token in front of texts; by default with kCausal
  bool no_special_in_text = false;         ///< special tokens in a text are plain text
  std::optional<std::int64_t> draws;  ///< sets of hidden tokens for each text, of kMdlm; none: 32
};

/// Declares --max-length of `command`: `what` happens to so many `tokens` (from 1 to 1e9), or by
/// default to `whose` number.
void add_max_length(cli::Command& command, std::optional<std::int64_t>& tokens,
                    const std::string& what, const std::string& whose);

/// Throws UsageError if the policy of `options` is skip: of commands that cannot go on without a
/// line.
void refuse_skip(const ScoringOptions& options);

/// Help of --kind and --policy, which commands may say in other words.
struct ScoringHelp {
  /// Of --kind.
  std::string kind =
      "kind of score: pll, tta, causal, electra, electric, maskless, or mdlm, a bound [by the "
      "model's head]";
  /// Of --policy.
  std::string policy =
      "what to do with a text that is too long: error, skip its line, chunk, slide:STRIDE, first "
      "or "
      "last; skip also for other bad lines [error]";
};

/// Declares --kind, --policy, --max-length, --bos, --no-bos, --draws and --no-special-in-text of
/// `command`, with `options` as their targets and texts of `help`.
void add_scoring(cli::Command& command, ScoringOptions& options, const ScoringHelp& help = {});

/// What scores lines, made by make_scoring.
struct Scoring {
  evaluate::ScoreOptions options;      ///< for a TextScorer
  evaluate::SentenceOptions sentence;  ///< how texts become sentences
  std::vector<Given> given;            ///< of max_length, bos, no_bos, draws and no_special_in_text
};

/// Checks that the model of `opened`, which has a tokenizer, can do what `options` request, and
/// says on `session` what runs; batches are those of `open_options`. The result refers to the
/// model, which must outlive it. Throws InputError for a kind that the model cannot do; UsageError
/// for a policy that is none, for what begin_token_of refuses, and for draws
/// with one that draws nothing.
Scoring make_scoring(const ScoringOptions& options, const OpenModelOptions& open_options,
                     const OpenedModel& opened, cli::Session& session);

/// Throws UsageError for what targets of encoder–decoders do not have: --bos in `options`, and a
/// policy of `scoring` that reads a part of them.
void check_targets(const ScoringOptions& options, const Scoring& scoring);

/// `stream` with what the policy of `scoring` says of lines that cannot be processed.
StreamOptions scored_stream(const StreamOptions& stream, const Scoring& scoring);

/// Notes on `session` what was left out of `shortened` texts; nothing if all were read whole.
void note_shortened(const evaluate::ShortenedTexts& shortened, cli::Session& session);

/// The members that say how a number came about, for JSON, without braces:
/// "model":"m","kind":"pll","precision":"f32","policy":"error", then what was given, of `opened`
/// and of `scoring`.
std::string provenance_json(const Scoring& scoring, const OpenedModel& opened);

}  // namespace masque::commands
