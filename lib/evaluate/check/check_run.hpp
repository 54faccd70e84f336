// What the black-box checks share: runs of a model, compared row by row and layer by layer.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/model.hpp"

namespace masque::evaluate {

/// A sequence that a check runs.
struct CheckInput {
  std::vector<TokenId> ids;              ///< those of the tokens
  std::vector<Index> positions;          ///< one an id; empty: as the model counts them
  std::vector<Index> segments;           ///< empty: 0
  std::optional<mask::Mask> mask;        ///< none: the model's, or that of its options
  std::optional<mask::Mask> query_mask;  ///< two streams: what the query stream reads
  std::vector<double> latents;           ///< as Batch::latents; empty: the model makes them
  std::vector<TokenId> source;           ///< what the encoder of an encoder–decoder reads

  /// Tokens.
  Index size() const { return static_cast<Index>(ids.size()); }
};

/// What stands next to the ids of `input` in a batch: views, which `input` must outlive.
inline model::SequenceParts parts_of(const CheckInput& input) {
  return {input.positions, input.segments, input.mask, input.query_mask, input.source};
}

/// What a model computes for a sequence: of the query stream where there is one.
struct CheckStates {
  std::vector<Matrix<double>> states;  ///< embeddings and every layer: (length, hidden size)
  /// (length, vocabulary): logits, of a discriminator one a row; of a model without a head its last
  /// states.
  Matrix<double> output;
};

/// Runs `model` on `input` alone, for comparison. Throws as Model::run does.
CheckStates check_states(const model::Model& model, const CheckInput& input);

/// A changed sequence, some of whose rows must not have changed.
struct CheckVariant {
  CheckInput input;                       ///< what is run
  const CheckStates* expected = nullptr;  ///< outputs of the unchanged sequence; borrowed
  std::vector<Index> rows;                ///< rows of `input`, ascending …
  std::vector<Index> expected_rows;       ///< … and the rows of `expected` that they should equal
};

/// Runs `model` on `variants` together, at most `batch_tokens` tokens at a time (a longer one
/// alone), and compares. One matrix (layers + 2, rows of the variant) for each. Entry (l, r) of a
/// variant's result: the largest |a − b| over the features of row r after layer l, divided by the
/// largest |b| of this row where that is above 1; l = layers + 1 is the output. 0: equal. Never
/// NaN. Throws as Model::run does.
std::vector<Matrix<double>> compare_variants(const model::Model& model,
                                             std::span<const CheckVariant> variants,
                                             Index batch_tokens);

/// What differences a check passes over by default in a model of `precision`: none, but for
/// padding, where sums run over other numbers of keys: 1e-5 (f32), 1e-12 (f64), 0.05 (bf16).
double padding_tolerance(kernel::Precision precision);

}  // namespace masque::evaluate
