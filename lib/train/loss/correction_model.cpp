#include "train/loss/correction_model.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "model/detector.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

model::DetectorDesign detector_sizes(const model::Design& design, const DesignRecipe& recipe,
                                     double size, Index layers) {
  if (!(size > 0 && size <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected more than 0 and at most 1",
                                 field("detector_size"), size));
  }
  DesignRecipe own = recipe;
  own.intermediate_size = design.intermediate_size;
  own = scaled_recipe(own, size);
  const bool gated = design.layer_kind == model::LayerKind::kGatedAttention;
  return {.num_hidden_layers = layers,
          .hidden_size = own.hidden_size,
          .num_attention_heads = gated ? 1 : own.num_attention_heads,
          .intermediate_size = own.intermediate_size};
}

void adapt_correction(const ObjectiveOptions& requested, const model::DetectorDesign& detector,
                      model::Design& design) {
  adapt_design({.objective = kCorrect,
                .vocab_size = requested.tokens.size,
                .mask_token = requested.tokens.mask},
               design);
  if (!design.variants.detector) design.variants.detector = detector;
  if (const auto problem = usage_error_message([&] { model::detector_rows(design); }))
    throw UsageError(fmt::format("{} {}: {}", field("objective"), kCorrect, *problem));
}

}  // namespace masque::train
