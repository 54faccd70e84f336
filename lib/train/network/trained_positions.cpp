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
  if (!design.variants.mixer.empty()) return;
  model::Design changed = design;
  changed.max_position_embeddings = positions;
  if (!same_scheme(design, changed)) return;
  design = changed;
  if (!weights.position_table) return;
  MatrixView<const float>& table = weights.position_table.view;
  const Index rows = positions + design.position_offset;
  MASQUE_CHECK(rows <= table.rows);
  table = table.middle_rows(0, rows);
}

}  // namespace masque::train
