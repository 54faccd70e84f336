// How text is scored: what the commands that give log-probabilities share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/open_model.hpp"
#include "probe/score/text_scorer.hpp"

namespace masque::commands {

/// How lines are scored.
struct ScoringOptions {
  std::optional<probe::ScoreKind> kind;
  /// What stands for kPll where no kind is given.
  probe::ScoreKind masked_kind = probe::ScoreKind::kPll;
  std::optional<std::string> policy;  ///< none: "error"
  std::optional<std::int64_t> max_length;
  bool no_bos = false;
  bool no_special_in_text = false;
  std::optional<std::int64_t> draws;
};

/// --max-length: `what` happens to so many tokens, or by default to `whose` number.
void add_max_length(cli::Command& command, std::optional<std::int64_t>& tokens,
                    const std::string& what, const std::string& whose);

/// Help of --kind and --policy, which commands may say in other words.
struct ScoringHelp {
  std::string kind =
      "kind of score: pll, tta, causal, electra, electric, maskless, or mdlm, a bound [by the "
      "model's head]";
  std::string policy =
      "what to do with a text that is too long: error, chunk, slide:STRIDE, first or last [error]";
};

/// --kind, --policy, --max-length, --no-bos, --draws, --no-special-in-text.
void add_scoring(cli::Command& command, ScoringOptions& options, const ScoringHelp& help = {});

struct Scoring {
  probe::ScoreOptions options;
  probe::SentenceOptions sentence;
  std::vector<Given> given;  ///< of max_length, no_bos, draws and no_special_in_text
};

/// Checks that the model can do what is requested, and says on stderr what runs. Throws UsageError
/// for no_bos with a kind that puts no token in front, and for draws with one that draws nothing.
Scoring make_scoring(const ScoringOptions& options, const OpenModelOptions& open_options,
                     const OpenedModel& opened, cli::Session& session);

/// The members that say how a number came about, for JSON: "kind":"pll","precision":"f32", …, then
/// what was given.
std::string provenance_json(const Scoring& scoring, const OpenedModel& opened);

}  // namespace masque::commands
