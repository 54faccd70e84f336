// What inference and training share of a pass: the order of operations, once. A pass is
// model::Pass, which keeps nothing, or train::EncoderRun, which keeps what its backward pass reads.
// Templates of the files *_forward.hpp take it as `Run` and use of it:
//
//   Number, Stream, kKeeps        float …; StreamRows with states; whether layers are kept
//   design()                      the model::Design
//   layer(l)                      dense layers and norms: model::PreparedLayer, train::EncoderLayer
//   matrix(role, l)               a parameter that is neither; without data: the model has none
//   memory(l, stream)             the LayerMemory that the layer fills
//   states(l, stream)             (rows, hidden size) in front of layer l, and after the last
//   drop(place, l, stream, x)     dropout, in place
//   project(l, stream, source, input, source_input)  queries, keys and values
//   attend(l, stream, source, heads, projected, context), mix(l, stream, x, context)
//   rotary()                      the RotaryTables
//
// and what the templates say. `stream` is the rows that a layer computes, `source` those that they
// read: the same ones, or the content of a stream of selected rows or of queries.
#pragma once

#include "kernel/activation.hpp"
#include "kernel/norm.hpp"
#include "kernel/parallel.hpp"
#include "model/design.hpp"
#include "model/forward/layer_memory.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// Where dropout acts.
enum class DropoutPlace : std::uint64_t {
  kEmbedding,     ///< what enters the projection of embeddings or the first layer
  kAttention,     ///< what attention, mixer or gated unit gives, before the residual
  kFeedForward,   ///< what the feed-forward layer gives, before the residual
  kWeights,       ///< attention weights
  kSource,        ///< what attention to the states of an encoder gives, before the residual
  kSourceWeights  ///< weights of that attention
};

/// Sizes of the attention of a layer.
struct HeadSizes {
  Index heads = 1;        ///< number of heads of queries
  Index key_heads = 1;    ///< number of heads of keys: queries share them
  Index head_size = 0;    ///< size of a head of queries and keys
  Index value_size = 0;   ///< size of a head of values
  Index value_heads = 0;  ///< VariantDesign::value_heads
};

/// Those of a transformer layer of `design`.
inline HeadSizes head_sizes(const Design& design) {
  return {design.num_attention_heads, design.num_key_value_heads, design.head_size,
          head_value_size(design), design.variants.value_heads};
}

/// What attention reads, (rows, heads · size) each, in memory of the pass that the next layer fills
/// anew where nothing is kept.
template <class T>
struct Projected {
  MatrixView<T> query,  ///< (rows of the stream, heads · head size)
      key,              ///< (rows of the source, key heads · head size)
      value;            ///< (rows of the source, heads of values · value size)
  /// Whether this call made keys and values; false: an earlier stream of the layer did.
  bool made = true;
};

/// `y` ← norm(α x + branch), the residual and `norm` of a post-norm block with α = `alpha`; 0:
/// without `x`. A pass that keeps has the sum in `branch` afterwards. `y` may be `x`.
template <class Run, class Norm, class T>
void residual_norm(const Norm& norm, double alpha, MatrixView<const T> x, MatrixView<T> branch,
                   MatrixView<T> y) {
  if (alpha == 1)
    return norm.residual_forward(x, branch, Run::kKeeps ? branch : MatrixView<T>(), y);
  if (alpha != 0) kernel::add_scaled<T>(alpha, x, branch);
  norm.forward(branch, y);
}

/// `x` ← `factor` · x, of any shape.
template <class T>
void scale_rows(double factor, MatrixView<T> x) {
  const T by = static_cast<T>(factor);
  kernel::for_rows(x.rows, x.columns, [&](Index i) {
    for (T& value : x.row_span(i)) value *= by;
  });
}

/// The residual of a pre-norm block: α `x` + m · `branch` with α = `alpha`, 1 or 0 (any other
/// counts as 1), and m = `multiplier`, in `branch` where `x` is kept, else in `x`, whose memory is
/// `own`. Returns where it is.
template <class Run, class T>
MatrixView<T> residual(double alpha, double multiplier, MatrixView<const T> x, MatrixView<T> branch,
                       MatrixView<T> own) {
  if constexpr (Run::kKeeps) {
    if (multiplier != 1) scale_rows(multiplier, branch);
    if (alpha != 0) kernel::add_to<T>(x, branch);
    return branch;
  } else {
    if (alpha != 0) {
      kernel::add_scaled<T>(multiplier, branch, own);
    } else {
      kernel::copy_rows<T>(branch, own);
      if (multiplier != 1) scale_rows(multiplier, own);
    }
    return own;
  }
}

/// `active` (rows, outputs) ← act(dense(x)) with `activation` and the layer `dense`. With kKeeps
/// `raw` is what the activation read; else the activation is part of the dense layer. Resizes both.
template <bool kKeeps, class T, class Dense>
void activated_product(const Dense& dense, kernel::Activation activation, MatrixView<const T> x,
                       Matrix<T>& raw, Matrix<T>& active) {
  const MatrixView<T> to = resized(active, x.rows, dense.outputs());
  if constexpr (kKeeps) {
    dense.forward(x, resized(raw, x.rows, dense.outputs()));
    kernel::copy_rows<T>(raw.view(), to);
    kernel::activation_forward<T>(activation, to);
  } else {
    dense.forward(x, to);
  }
}

}  // namespace masque::model
