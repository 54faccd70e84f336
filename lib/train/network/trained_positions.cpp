#include "train/network/trained_positions.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/variants.hpp"

namespace masque::train {

namespace {

/// Whether the scheme of positions has the same weights in both.
bool same_scheme(const model::Design& a, const model::Design& b) {
  const auto scheme = model::position_scheme(a);
  if (!scheme) return true;
  const auto rows = [](const nn::PositionParameter& parameter) { return parameter.rows; };
  return std::ranges::equal(scheme->parameters(model::position_shape(a)),
                            scheme->parameters(model::position_shape(b)), {}, rows, rows);
}

}  // namespace

void set_trained_positions(Index positions, model::Design& design,
                           model::ModelWeights<float>& weights) {
  if (design.variants.mixer != nullptr) return;
  model::Design changed = design;
  changed.max_position_embeddings = positions;
  if (!same_scheme(design, changed)) return;
  design = changed;
  const auto cut = [](model::Weight<float>& table, Index rows) {
    if (!table) return;
    MASQUE_CHECK(rows <= table.view.rows);
    table.view = table.view.middle_rows(0, rows);
  };
  cut(weights.position_table, positions + design.position_offset);
  cut(weights.late_positions, positions);
}

}  // namespace masque::train
