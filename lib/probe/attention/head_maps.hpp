// The attention weights of chosen heads on one sequence.
#pragma once

#include <functional>
#include <optional>

#include "model/model.hpp"
#include "model/variants.hpp"
#include "probe/score/sequence.hpp"

namespace masque::probe {

/// One layer or all, one head or all.
struct HeadChoice {
  std::optional<Index> layer;
  std::optional<Index> head;

  Index layers(const model::Design& design) const { return layer ? 1 : design.num_hidden_layers; }
  Index heads(const model::Design& design) const { return head ? 1 : value_heads(design); }
};

/// Throws UsageError if the model has no such layer or head.
void check_choice(const HeadChoice& choice, const model::Design& design);

/// Runs the sequence and calls take(layer, head, weights) once for every chosen head, weights
/// (T, T) as long as the call; several calls may run at the same time. Memory: that of the run.
/// Throws InputError as Model::run does.
void each_head(
    const model::Model& model, const Sequence& sequence, const HeadChoice& choice,
    const std::function<void(Index layer, Index head, MatrixView<const double> weights)>& take);

/// The same for hidden states 0 … layers: take(state, rows), rows (T, hidden size), in order.
/// Of two-stream models those of the content stream.
void each_state(const model::Model& model, const Sequence& sequence,
                const std::function<void(Index state, MatrixView<const double> rows)>& take);

}  // namespace masque::probe
