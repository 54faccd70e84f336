#include "train/run/starting_design.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"

namespace masque::train {

namespace {

// What families of such layers have in a head, where heads are many.
constexpr Index kUsualHeadSize = 64;

bool predicts_words(const model::HeadDesign& head) {
  return head.kind == model::HeadKind::kMasked || head.kind == model::HeadKind::kCausal;
}

/// Throws UsageError for a shifted head that an objective has left without what it needs.
void check_shifted_head(const model::Design& design) {
  if (const auto problem = model::shifted_head_problem(design))
    throw UsageError(
        fmt::format("{}: the model predicts each token from the position before it: {}",
                    field("objective"), *problem));
}

}  // namespace

model::Design starting_design(const model::StartingModel& start) {
  model::Design design = start.design();
  design.notes.clear();
  design.streams = model::Streams::kOne;
  model::set_mask("full", design);
  return design;
}

void adapt_starting_design(const model::StartingModel& start,
                           const std::function<void(model::Design&)>& adapt,
                           model::Design& design) {
  const model::HeadDesign own = design.head;
  design.head = {};
  adapt(design);
  const model::HeadKind kind = design.head.kind;
  if (kind == model::HeadKind::kNone) return;
  if (const auto head = start.head(kind)) {
    design.head = *head;
    return check_shifted_head(design);
  }
  if (!predicts_words(design.head)) return;
  // Its own one, or its family's, which now predicts something else.
  const auto other =
      kind == model::HeadKind::kMasked ? model::HeadKind::kCausal : model::HeadKind::kMasked;
  if (predicts_words(own)) {
    design.head = own;
  } else if (const auto head = start.head(other)) {
    design.head = *head;
  }
  design.head.kind = kind;
  // The logits at a position of a shifted head are those of the next token, as of a causal one.
  design.head.shifted = false;
}

model::ModelWeights<float> starting_weights(const model::StartingModel& start,
                                            const model::Design& design) {
  model::ModelWeights<float> weights = start.weights();
  if (predicts_words(start.design().head) != predicts_words(design.head)) {
    weights.head_transform = {};
    weights.head_norm = {};
    weights.decoder = {};
  }
  return weights;
}

template <class T>
ParameterMap add_starting_model(const model::StartingModel& start, const model::ModelPlan& plan,
                                std::optional<EncoderPart>& source, Parameters<T>& parameters) {
  ParameterMap shared;
  source.reset();
  if (const model::StartingModel* encoder = start.encoder()) {
    const model::Design& design = encoder->design();
    source = EncoderPart{design, add_model(encoder->saved_design(design).plan, nullptr, "",
                                           ParameterMap(), parameters, true)};
    const model::Role words = model::Role::kWordTable;
    if (start.shares_words()) shared.set(words, false, 0, 0, source->map.weight(words));
  }
  return add_model(plan, model::head_like(plan, plan.design.head), "", shared, parameters);
}

template ParameterMap add_starting_model(const model::StartingModel&, const model::ModelPlan&,
                                         std::optional<EncoderPart>&, Parameters<float>&);
template ParameterMap add_starting_model(const model::StartingModel&, const model::ModelPlan&,
                                         std::optional<EncoderPart>&, Parameters<double>&);

void check_token_types(const text::Tokenizer& tokenizer, const model::Design& design) {
  if (design.type_vocab_size == 0) return;
  const std::vector<std::uint32_t> types = tokenizer.encode("", {.special = true}).type_ids;
  const Index highest = types.empty() ? 0 : *std::ranges::max_element(types);
  if (highest < design.type_vocab_size) return;
  throw InputError(tokenizer.parts().path,
                   fmt::format("the tokenizer's template has token type {}, expected 0 to {}: the "
                               "model has {} token types",
                               highest, design.type_vocab_size - 1, design.type_vocab_size));
}

DesignRecipe recipe_beside(const model::Design& design, Index longest) {
  const bool gated_units = design.layer_kind == model::LayerKind::kGatedAttention;
  DesignRecipe recipe;
  recipe.vocab_size = design.vocab_size;
  recipe.num_hidden_layers = design.num_hidden_layers;
  recipe.hidden_size = design.hidden_size;
  recipe.num_attention_heads = gated_units ? std::max<Index>(1, design.hidden_size / kUsualHeadSize)
                                           : design.num_attention_heads;
  if (!gated_units) {
    recipe.intermediate_size = design.intermediate_size;
    recipe.normalizer = design.normalizer.text();
  }
  recipe.max_position_embeddings =
      design.max_position_embeddings > 0 ? design.max_position_embeddings : longest;
  if (!design.variants.position.empty()) {
    recipe.position = design.variants.position.text();
    recipe.position_shared = design.variants.position_shared;
    return recipe;
  }
  const std::string_view scheme = model::own_position(design.position).scheme;
  if (!scheme.empty()) recipe.position = scheme;
  return recipe;
}

}  // namespace masque::train
