// Soft masking: a detector says of each token how likely it is wrong, and the layers read a mixture
// of its embedding and that of [MASK]. Zhang et al. 2020, arXiv:2005.07421, section 3. Once for
// inference and training.
#pragma once

#include <cmath>
#include <complex>
#include <vector>

#include "kernel/norm.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/parallel.hpp"
#include "model/forward/embed_forward.hpp"

namespace masque::model {

/// What soft masking makes of the rows of the content.
template <class T>
struct SoftMaskMemory {
  Matrix<T> plain;          ///< e (rows, hidden size): what would enter the first layer without it
  Matrix<T> logits;         ///< (rows, 1) of the detector
  Matrix<T> probabilities;  ///< (rows, 1): σ of these
};

/// In states(0, content): e'_i = p_i · e_mask + (1 − p_i) · e_i (equation 3). e_i is the embedding
/// of token i, of which the norm and the projection after the tables are part; e_mask is that of
/// [MASK] at the same position and segment; p_i = σ(logit i) (equation 2). Last states get e_i
/// added (equation 6), after the final norm, in streams_forward(). Of `run` also:
///
///   masked()            a stream with the rows of the content, for the embeddings of [MASK]
///   soft_mask()         the SoftMaskMemory
///   detect(e, logits)   the detector: (rows, hidden size) to (rows, 1)
///   show_detections()   somebody may want the probabilities
template <class Run>
void soft_mask_forward(Run& run) {
  using T = typename Run::Number;
  auto& content = run.content();
  auto& masked = run.masked();
  SoftMaskMemory<T>& memory = run.soft_mask();
  const Index n = content.count();
  const MatrixView<T> mixed = run.states(0, content);
  const MatrixView<T> plain = resized(memory.plain, n, mixed.columns);
  kernel::copy_rows<T>(mixed, plain);
  const std::vector<TokenId> masks(static_cast<std::size_t>(n), *run.design().mask_token_id);
  embed_forward(run, masked, masks);
  const MatrixView<T> mask = run.states(0, masked);
  const MatrixView<T> logits = resized(memory.logits, n, 1);
  run.detect(plain, logits);
  const MatrixView<T> probabilities = resized(memory.probabilities, n, 1);
  kernel::for_rows(n, mixed.columns, [&](Index i) {
    const T p = kernel::reference::sigmoid_of(logits.at(i, 0));
    probabilities.at(i, 0) = p;
    for (Index c = 0; c < mixed.columns; ++c)
      mixed.at(i, c) = p * mask.at(i, c) + (T(1) - p) * plain.at(i, c);
  });
  run.show_detections();
}

}  // namespace masque::model
