#include "engine/engine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/parallel.hpp"
#include "kernel/parallel.hpp"
#include "nn/normalizer.hpp"

namespace masque::engine {

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
  if (o.normalizer) given.push_back({"normalizer", *o.normalizer});
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
  command.option("--normalizer", "NAME", options.normalizer,
                 "replaces the model's softmax, as attn-probe variants lists them: "
                 "'log_n(base=512)'");
  add_threads(command, options.common);
  add_quiet(command, options.common);
  add_verbose(command, options.common);
}

void add_batch_tokens(cli::Command& command, EngineOptions& options) {
  command.option("--batch-tokens", "N", options.batch_tokens, cli::Range{1, 1e9},
                 "tokens that run together; bounds the memory, changes no result");
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
  if (options.normalizer) {
    nn::parse_normalizer(*options.normalizer);  // also an empty name is refused
    engine.options.normalizer = *options.normalizer;
  }
  if (with_tokenizer) {
    open_tokenizer(options, folder, engine, session);
  } else {
    // Only the mask token is wanted, and only by models that say so themselves if it is missing.
    const auto unread = input_error_message([&] {
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

}  // namespace masque::engine
