// From the last states to what meets the vocabulary, or a discriminator's one row: transform,
// activation, norm, scale. Once for inference and training.
#pragma once

#include "model/design.hpp"
#include "model/forward/forward.hpp"
#include "model/forward/layer_memory.hpp"

namespace masque::model {

/// What a head computes of the last states; training keeps it for the backward pass.
template <class T>
struct HeadMemory {
  Matrix<T> raw,     ///< (rows, outputs) of the transform, before the activation
      active;        ///< the same after the activation
  Matrix<T> normed,  ///< the transform after its norm
      scaled;        ///< what the vocabulary matrix reads, if HeadDesign::scale is not 1
};

/// What the vocabulary matrix of `head` reads, from the last states `last` (rows, last_width()):
/// transform, norm and scale. The result lies in `last` or in `own`. `weights`: a dense layer
/// `transform`, empty without one, and its `norm`, with forward() and present(). Of kKeeps
/// everything is kept in `own`.
template <bool kKeeps, class Weights, class T>
MatrixView<const T> head_forward(const HeadDesign& head, const Weights& weights,
                                 MatrixView<const T> last, HeadMemory<T>& own) {
  MatrixView<const T> x = last;
  if (!weights.transform.empty()) {
    activated_product<kKeeps, T>(weights.transform, head.activation, last, own.raw, own.active);
    x = own.active.view();
    if (weights.norm.present()) {
      const MatrixView<T> normed =
          kKeeps ? resized(own.normed, x.rows, x.columns) : own.active.view();
      weights.norm.forward(x, normed);
      x = normed;
    }
  }
  if (head.scale == 1) return x;
  const MatrixView<T> scaled = resized(own.scaled, x.rows, x.columns);
  kernel::copy_rows<T>(x, scaled);
  for (T& value : own.scaled.span()) value *= static_cast<T>(head.scale);
  return scaled;
}

}  // namespace masque::model
