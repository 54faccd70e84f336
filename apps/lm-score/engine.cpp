#include "engine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/parallel.hpp"
#include "kernel/parallel.hpp"
#include "probe/leak_check.hpp"

namespace masque::lm_score {

namespace {

std::string_view head_text(model::HeadKind kind) {
  switch (kind) {
    case model::HeadKind::kNone: return "no head";
    case model::HeadKind::kMasked: return "masked head";
    case model::HeadKind::kCausal: return "causal head";
    case model::HeadKind::kDiscriminator: break;
  }
  return "discriminator";
}

void open_tokenizer(const EngineOptions& options, const std::string& folder, Engine& engine,
                    cli::Session& session) {
  engine.tokenizer = text::Tokenizer::open(options.tokenizer.value_or(folder));
  for (const std::string& warning : engine.tokenizer->warnings())
    session.note(fmt::format("{}: {}", engine.tokenizer->parts().path, warning));
  engine.options.mask_token_id = engine.tokenizer->roles().mask;
}

std::vector<Given> given_options(const EngineOptions& o) {
  std::vector<Given> given;
  if (o.tokenizer) given.push_back({"tokenizer", *o.tokenizer});
  if (!o.family.empty()) given.push_back({"family", o.family});
  if (o.mask) given.push_back({"mask", *o.mask});
  if (o.keys) given.push_back({"kv", *o.keys == KeySource::kInput ? "input" : "layer"});
  if (o.query) given.push_back({"query", *o.query == QueryStart::kPosition ? "position" : "token"});
  return given;
}

/// A vocab.txt in Google's style names no roles. T-TA was trained inside [SOS] … [EOS], which its
/// vocabulary has beside [CLS] and [SEP].
void use_sentence_ends(Engine& engine, const std::string& path, cli::Session& session) {
  const text::TokenizerParts& parts = engine.tokenizer->parts();
  const auto named = [](const auto& role) { return role.first == "cls" || role.first == "sep"; };
  if (engine.model->design().family != "tta" || parts.format != "vocab.txt" ||
      std::any_of(parts.role_names.begin(), parts.role_names.end(), named) ||
      !engine.tokenizer->find("[SOS]") || !engine.tokenizer->find("[EOS]")) {
    return;
  }
  session.note(fmt::format("{}: a T-TA reads text inside [SOS] and [EOS]", parts.path));
  engine.tokenizer = text::Tokenizer::open(path, {.roles = {{"cls", "[SOS]"}, {"sep", "[EOS]"}}});
}

void check_sizes(const Engine& engine) {
  const auto tokens = static_cast<Index>(engine.tokenizer->size());
  const Index rows = engine.model->design().vocab_size;
  if (tokens <= rows) return;
  throw InputError(engine.tokenizer->parts().path,
                   fmt::format("{} tokens, expected at most the {} of the model", tokens, rows));
}

}  // namespace

std::string given_json(const std::vector<Given>& given) {
  std::string out;
  for (const Given& g : given)
    out += fmt::format(R"(,"{}":{})", g.name, g.text ? quote_json(g.value) : g.value);
  return out;
}

void add_engine(cli::Command& command, EngineOptions& options) {
  using kernel::Precision;
  command.argument("MODEL", options.model, "a checkpoint folder");
  command.option("--tokenizer", "PATH", options.tokenizer,
                 "a tokenizer as tok takes it [the folder's]");
  command.option("--family", "NAME", options.family, "read the folder as this model_type");
  command.choice("--precision", options.precision,
                 {{"f32", Precision::kF32}, {"bf16", Precision::kBf16}, {"f64", Precision::kF64}},
                 "float; operands of products rounded to bfloat16; double");
  command.option("--mask", "EXPR", options.mask,
                 "replaces the model's mask: one for all layers or a list, as in mask-viz");
  command.choice(
      "--kv", options.keys,
      {{"layer", std::optional(KeySource::kLayer)}, {"input", std::optional(KeySource::kInput)}},
      "what later layers read: the layer before, or token embeddings again");
  command.choice("--query", options.query,
                 {{"token", std::optional(QueryStart::kToken)},
                  {"position", std::optional(QueryStart::kPosition)}},
                 "what queries start with: their token, or their position only");
  command.option("--batch-tokens", "N", options.batch_tokens, cli::Range{1, 1e9},
                 "tokens that run together; bounds the memory, changes no result");
  add_threads(command, options.common);
  add_quiet(command, options.common);
  add_verbose(command, options.common);
}

std::string Engine::description() const {
  const model::Design& design = model->design();
  return fmt::format("{}, {} layers, {}, {}", design.family, design.num_hidden_layers,
                     kernel::precision_name(model->precision()), head_text(design.head.kind));
}

Engine open_engine(const EngineOptions& options, const std::string& folder, bool with_tokenizer,
                   cli::Session& session) {
  kernel::set_threads(options.common.threads > 0 ? options.common.threads : default_threads());
  Engine engine;
  engine.path = options.model;
  engine.given = given_options(options);
  engine.options.precision = options.precision;
  engine.options.family = options.family;
  if (options.mask) engine.options.masks = parse_mask_layers(*options.mask);
  engine.options.keys = options.keys;
  engine.options.query = options.query;
  if (with_tokenizer) {
    open_tokenizer(options, folder, engine, session);
  } else {
    // Only the mask token is wanted, and only by models that say so themselves if it is missing.
    const auto unread = problem_of([&] {
      const auto tokenizer = text::Tokenizer::open(options.tokenizer.value_or(folder));
      engine.options.mask_token_id = tokenizer.roles().mask;
    });
    if (unread && options.tokenizer) throw InputError(*unread);
  }
  engine.model = model::open_model(folder, engine.options);
  if (with_tokenizer) {
    use_sentence_ends(engine, options.tokenizer.value_or(folder), session);
    check_sizes(engine);
  }
  for (const std::string& note : engine.model->design().notes)
    session.note(fmt::format("{}: {}", folder, note));
  for (const std::string& name : engine.model->unused())
    session.detail(fmt::format("{}: tensor '{}' is not used", folder, name));
  return engine;
}

void add_scoring(cli::Command& command, ScoringOptions& options) {
  using probe::ScoreKind;
  command.choice("--kind", options.kind,
                 {{"pll", std::optional(ScoreKind::kPll)},
                  {"pll-word-l2r", std::optional(ScoreKind::kPllWordL2r)},
                  {"pll-word", std::optional(ScoreKind::kPllWord)},
                  {"pll-global-l2r", std::optional(ScoreKind::kPllGlobalL2r)},
                  {"tta", std::optional(ScoreKind::kTta)},
                  {"causal", std::optional(ScoreKind::kCausal)},
                  {"electra", std::optional(ScoreKind::kElectra)}},
                 "what is summed [by the model's head: pll, tta, causal or electra]");
  command.option("--policy", "POLICY", options.policy,
                 "for a text that is too long: error, chunk, slide:STRIDE, first or last");
  command.option("--max-length", "N", options.max_length, cli::Range{1, 1e9},
                 "tokens read at once, those of the template included [the model's]");
  command.flag("--no-bos", options.no_bos,
               "causal: put no bos (or eos) token in front where the template has none; the first "
               "token is then not scored");
  command.flag("--no-special-in-text", options.no_special_in_text,
               "special tokens that stand in the text are text");
}

Scoring make_scoring(const ScoringOptions& options, const EngineOptions& engine_options,
                     const Engine& engine, cli::Session& session) {
  const model::Design& design = engine.model->design();
  Scoring scoring;
  probe::ScoreOptions& score = scoring.options;
  score.policy = probe::parse_length_policy(options.policy);
  const auto problem = problem_of([&] {
    score.kind = options.kind ? *options.kind : probe::default_kind(design, engine.options);
    probe::check_kind(score.kind, design, engine.options);
  });
  if (problem) throw InputError(engine.path, *problem);
  if (!engine.options.masks.empty() &&
      (score.kind == probe::ScoreKind::kTta || score.kind == probe::ScoreKind::kCausal)) {
    const auto leaks = std::make_shared<probe::LeakCheck>(score.kind, design, engine.options);
    score.check_length = [leaks](Index length) { leaks->at(length); };
  }
  score.mask = engine.tokenizer->roles().mask;
  score.max_length = static_cast<Index>(options.max_length.value_or(0));
  score.batch_tokens = static_cast<Index>(engine_options.batch_tokens);
  if (options.max_length)
    scoring.given.push_back({"max_length", std::to_string(*options.max_length), false});
  if (options.no_bos) scoring.given.push_back({"no_bos", "true", false});
  if (options.no_special_in_text) scoring.given.push_back({"no_special_in_text", "true", false});
  scoring.sentence.special_in_text = !options.no_special_in_text;
  const bool two_streams = design.streams == model::Streams::kTwo;
  if (score.kind == probe::ScoreKind::kCausal && !two_streams && !options.no_bos)
    scoring.sentence.begin = probe::begin_token(*engine.tokenizer);
  if (const auto limit = probe::token_limit(design, score.max_length)) {
    const Index around = encode_sentence(*engine.tokenizer, "", scoring.sentence).size();
    probe::check_stride(score.policy, std::max<Index>(*limit - around, 1));
  }
  session.note(fmt::format("{}: {}; kind {}, policy {}", engine.path, engine.description(),
                           probe::kind_name(score.kind), probe::policy_text(score.policy)));
  return scoring;
}

std::string provenance_json(const Scoring& scoring, const Engine& engine) {
  return fmt::format(R"("model":{},"kind":"{}","precision":"{}","policy":"{}"{}{})",
                     quote_json(engine.path), probe::kind_name(scoring.options.kind),
                     kernel::precision_name(engine.model->precision()),
                     probe::policy_text(scoring.options.policy), given_json(engine.given),
                     given_json(scoring.given));
}

}  // namespace masque::lm_score
