// The attention weights of chosen heads on one sequence.
#pragma once

#include <functional>
#include <optional>

#include "evaluate/score/sequence.hpp"
#include "model/model.hpp"
#include "model/variants.hpp"

namespace masque::evaluate {

/// One layer or all, one head or all.
struct HeadChoice {
  std::optional<Index> layer;  ///< from 0; none: all
  std::optional<Index> head;   ///< from 0; none: all
  bool of_source = false;  ///< weights over the source (model::SourceDesign), not the text's own

  /// How many layers of a model of `design` are chosen.
  Index layers(const model::Design& design) const { return layer ? 1 : design.num_hidden_layers; }
  /// How many heads of each of these layers are chosen; all are value_heads() of `design`.
  Index heads(const model::Design& design) const { return head ? 1 : value_heads(design); }
};

/// Throws UsageError if a model of `design` has no such layer or head as `choice` says.
void check_choice(const HeadChoice& choice, const model::Design& design);

/// Runs `model` on `sequence` and calls `take`(layer, head, weights) once for every head of
/// `choice`: weights (T, T), of_source (T, tokens of the source), a view that ends with the call;
/// several calls may run at the same time. Memory: that of the run. Throws as check_choice and
/// Model::run do.
void each_head(
    const model::Model& model, const Sequence& sequence, const HeadChoice& choice,
    const std::function<void(Index layer, Index head, MatrixView<const double> weights)>& take);

/// Runs `model` on `sequence` and calls `take`(state, rows) for hidden states 0 … layers, in order:
/// rows (T, hidden size), a view that ends with the call. With two-stream models those of the
/// content stream. Throws as Model::run does.
void each_state(const model::Model& model, const Sequence& sequence,
                const std::function<void(Index state, MatrixView<const double> rows)>& take);

}  // namespace masque::evaluate
