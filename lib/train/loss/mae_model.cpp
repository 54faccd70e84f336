#include "train/loss/mae_model.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "model/checkpoint/save.hpp"
#include "model/layer_list.hpp"
#include "train/data/record_example.hpp"
#include "train/loss/shared_tables.hpp"

namespace masque::train {

void adapt_mae(const ObjectiveOptions& requested, model::Design& encoder) {
  if (!encoder.variants.mixer.empty()) {
    throw UsageError(
        fmt::format("{}: the mixer {} mixes tokens by their order in the encoder's input, "
                    "where hidden tokens are missing",
                    kMae, encoder.variants.mixer));
  }
  if (encoder.convolution_size > 0) {
    throw UsageError(
        fmt::format("{}: a convolution reads neighbours in the encoder's input, where hidden "
                    "tokens are missing",
                    kMae));
  }
  encoder.head = {};
  adapt_design({.objective = kMae,
                .head = model::HeadKind::kNone,
                .segments = requested.pairs,
                .vocab_size = requested.tokens.size,
                .mask_token = requested.tokens.mask},
               encoder);
}

DesignRecipe decoder_recipe(const DesignRecipe& recipe, double size, Index layers) {
  if (!(size > 0 && size <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected more than 0 and at most 1",
                                 field("decoder_size"), size));
  }
  for (const auto& [name, text] :
       {std::pair{"position", &recipe.position}, std::pair{"normalizer", &recipe.normalizer}}) {
    if (!model::is_layer_list(*text)) continue;
    throw UsageError(
        fmt::format("{}: '{}' is a list by layer, but the decoder of {} {} has other layers; "
                    "use one for all layers",
                    field(name), escape(*text), field("objective"), kMae));
  }
  DesignRecipe own = scaled_recipe(recipe, size);
  own.input_residual = true;  // it reads the encoder's states
  own.late_positions = 0;
  own.num_hidden_layers = layers;
  return own;
}

model::Design decoder_design(const DesignRecipe& own, const ObjectiveOptions& requested,
                             const model::Design& encoder) {
  model::Design design = design_of(own);
  design.embedding_size = encoder.hidden_size;
  design.type_vocab_size = encoder.type_vocab_size;
  design.pad_token_id = encoder.pad_token_id;
  design.mask_token_id = encoder.mask_token_id;
  adapt_design({.objective = "decoder",
                .segments = requested.pairs,
                .vocab_size = requested.tokens.size,
                .mask_token = requested.tokens.mask},
               design);
  return design;
}

template <class T>
void add_mae(MaeModel& model, Parameters<T>& parameters) {
  model.encoder_map =
      add_model(model.encoder_plan ? *model.encoder_plan : model::plan_of(model.encoder), nullptr,
                "", ParameterMap(), parameters);
  const ParameterMap tables = shared_tables(model.encoder, model.encoder_map, model.decoder);
  const model::ModelPlan plan = model::plan_of(model.decoder);
  model.decoder_map =
      add_model(plan, model::head_like(plan, model.decoder.head), "decoder.", tables, parameters);
}

template void add_mae(MaeModel&, Parameters<float>&);
template void add_mae(MaeModel&, Parameters<double>&);

MaeExamples mae_examples(const Example& hidden) {
  MaeExamples out;
  out.decoder = hidden;
  out.decoder.mask.reset();
  Example& kept = out.encoder;
  kept.sparse = true;
  for (Index i = 0; i < hidden.size(); ++i) {
    if (std::ranges::binary_search(hidden.rows, i)) continue;
    const auto at = static_cast<std::size_t>(i);
    out.given.push_back(i);
    kept.rows.push_back(kept.size());
    kept.ids.push_back(hidden.ids[at]);
    kept.positions.push_back(hidden.positions.empty() ? i : hidden.positions[at]);
    if (!hidden.segments.empty()) kept.segments.push_back(hidden.segments[at]);
  }
  kept.targets = kept.ids;
  return out;
}

}  // namespace masque::train
