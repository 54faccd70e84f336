#include "commands/scoring.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "base/thread/parallel.hpp"
#include "cli/input_lines.hpp"
#include "cli/shared_options.hpp"
#include "evaluate/score/model_kinds.hpp"
#include "evaluate/score/score_leak.hpp"
#include "model/masks.hpp"
#include "records/selection.hpp"
#include "train/data/corpus.hpp"

namespace masque::commands {

void add_max_length(cli::Command& command, std::optional<std::int64_t>& tokens,
                    const std::string& what, const std::string& whose) {
  command.option(
      "--max-length", "N", tokens, cli::AllowedRange{1, 1e9},
      fmt::format("maximum number of tokens {}, special tokens included [{}]", what, whose));
}

void refuse_skip(const ScoringOptions& options) {
  if (options.policy == "skip") {
    throw UsageError(fmt::format(
        "{} skip: not supported by this command, expected error, chunk, slide:STRIDE, first or "
        "last",
        field("policy")));
  }
}

void add_scoring(cli::Command& command, ScoringOptions& options, const ScoringHelp& help) {
  command.choice("--kind", options.kind, evaluate::kind_names(), help.kind);
  command.option("--policy", "POLICY", options.policy, help.policy);
  add_max_length(command, options.max_length, "read at once", "the model's");
  add_begin(command, options.begin, "; the first token is then not scored");
  command.option("--draws", "K", options.draws, cli::AllowedRange{2, 1e6},
                 "mdlm: number of random sets of hidden tokens per text [32]");
  cli::add_no_special_in_text(command, options.no_special_in_text);
}

namespace {

/// Masks that are given, or the model's own in the mask language, may leak at some lengths alone;
/// those of words are made for each text.
void add_leak_test(const model::Design& design, const OpenedModel& opened,
                   evaluate::ScoreOptions& score) {
  score.mask_of = opened.mask_of;
  if (score.kind != evaluate::ScoreKind::kTta && score.kind != evaluate::ScoreKind::kCausal) return;
  if (opened.options.masks.empty() && design.variants.masks.empty()) return;
  // What scoring hides there no mask shows.
  if (design.streams == model::Streams::kTwo) return;
  const auto leaks = std::make_shared<evaluate::ScoreLeak>(score.kind, design, opened.options);
  score.check_length = [leaks](Index length) { leaks->at(length); };
  if (!opened.mask_of) return;
  score.mask_of = [leaks,
                   tokens = train::token_table(*opened.tokenizer)](std::span<const TokenId> ids) {
    return leaks->close(records::word_lengths(ids, tokens));
  };
}

}  // namespace

Scoring make_scoring(const ScoringOptions& options, const OpenModelOptions& open_options,
                     const OpenedModel& opened, cli::Session& session) {
  const model::Design& design = opened.model->design();
  Scoring scoring;
  evaluate::ScoreOptions& score = scoring.options;
  score.policy = evaluate::parse_length_policy(options.policy.value_or("error"));
  const auto problem = input_error_message([&] {
    score.kind = options.kind ? *options.kind : evaluate::default_kind(design, opened.options);
    if (!options.kind && score.kind == evaluate::ScoreKind::kPll) score.kind = options.masked_kind;
    evaluate::check_kind(score.kind, design, opened.options);
  });
  if (problem) throw InputError(opened.path, *problem);
  const bool begins = score.kind == evaluate::ScoreKind::kCausal &&
                      design.streams != model::Streams::kTwo && !design.source;
  scoring.sentence.begin = begin_token_of(
      options.begin, begins, opened,
      fmt::format("a {} with --kind {}", design.family, evaluate::kind_name(score.kind)), session);
  const bool draws = score.kind == evaluate::ScoreKind::kMdlm;
  if (options.draws && !draws) {
    throw UsageError(fmt::format("--draws applies to --kind mdlm, not to --kind {}; remove it",
                                 evaluate::kind_name(score.kind)));
  }
  if (draws) {
    score.draws = static_cast<Index>(options.draws.value_or(score.draws));
    score.block_size = model::causal_block_size(design, opened.options.masks).value_or(0);
    scoring.given.push_back({"draws", std::to_string(score.draws), false});
  }
  add_leak_test(design, opened, score);
  score.mask = opened.tokenizer->roles().mask;
  score.max_length = static_cast<Index>(options.max_length.value_or(0));
  score.batch_tokens = static_cast<Index>(open_options.batch_tokens);
  if (options.max_length)
    scoring.given.push_back({"max_length", std::to_string(*options.max_length), false});
  const std::vector<Given> begin = given_begin(options.begin);
  scoring.given.insert(scoring.given.end(), begin.begin(), begin.end());
  if (options.no_special_in_text) scoring.given.push_back({"no_special_in_text", "true", false});
  scoring.sentence.special_in_text = !options.no_special_in_text;
  if (const auto limit = evaluate::token_limit(design, score.max_length)) {
    const Index around = encode_sentence(*opened.tokenizer, "", scoring.sentence).size();
    evaluate::check_stride(score.policy, std::max<Index>(*limit - around, 1));
  }
  session.note(fmt::format("{}: {}; kind {}, policy {}", opened.path, opened.description(),
                           evaluate::kind_name(score.kind), evaluate::policy_text(score.policy)));
  return scoring;
}

void check_targets(const ScoringOptions& options, const Scoring& scoring) {
  refuse_begin(options.begin);
  if (!evaluate::refuses_long(scoring.options.policy))
    throw UsageError(
        fmt::format("pairs of a source and a target: only with {} error or skip", field("policy")));
}

StreamOptions scored_stream(const StreamOptions& stream, const Scoring& scoring) {
  StreamOptions out = stream;
  if (scoring.options.policy.kind == evaluate::LengthPolicy::Kind::kSkip)
    out.input.bad = cli::BadLines::kSkip;
  return out;
}

void note_shortened(const evaluate::ShortenedTexts& shortened, cli::Session& session) {
  if (shortened.texts == 0) return;
  session.note(fmt::format("{} shortened, {} not read ({})", counted(shortened.texts, "text"),
                           counted(shortened.tokens, "token"), field("policy")));
}

std::string provenance_json(const Scoring& scoring, const OpenedModel& opened) {
  std::string out;
  JsonWriter json(out);
  json.member("model", opened.path).member("kind", evaluate::kind_name(scoring.options.kind));
  json.member("precision", kernel::precision_name(opened.model->precision()));
  json.member("policy", evaluate::policy_text(scoring.options.policy));
  add_given(json, opened.given);
  add_given(json, scoring.given);
  return out;
}

}  // namespace masque::commands
