// Rotary position embedding: pairs of features rotated by an angle that grows with the position.
#pragma once

#include <span>
#include <vector>

#include "base/types.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// Which features make a pair.
enum class RotaryLayout {
  kAdjacent,  ///< (2t, 2t + 1): RoFormer
  kHalf,      ///< (t, t + size/2): GPT-NeoX, Llama
};

/// The `size`/2 angles of a head of `size` features, even, at position 1, in radians. Su et al.
/// 2021, arXiv:2104.09864, eq. 15: θ_t = base^(−2t/size), with `base` usually 10,000.
std::vector<double> rotary_frequencies(double base, Index size);

/// Cosines and sines of the angles of some rows.
template <class T>
struct RotaryTable {
  Matrix<T> cosine,  ///< (rows, pairs)
      sine;          ///< (rows, pairs)
};

/// The table of one row for each of `positions`: angle t is position · `frequencies`[t] radians.
/// The angles are computed in double and rounded once; with `float_angles` position · frequency is
/// rounded to float first, as transformers does: at position 500 that moves an angle by up to
/// 1.5e-5. `factor` multiplies cosine and sine (YaRN). Parallel over rows.
template <class T>
RotaryTable<T> rotary_table(std::span<const double> frequencies, std::span<const Index> positions,
                            double factor = 1, bool float_angles = false);

/// Rotates, in place, the first 2 · pairs features of each head of `x` (rows, heads ·
/// `head_size`) by the angles of `table` (rows, pairs), which has the rows of x. `layout` says
/// which features make a pair.
template <class T>
void rotary_forward(RotaryLayout layout, const RotaryTable<T>& table, Index head_size,
                    MatrixView<T> x);
/// `d_x` ← its gradient, in place: rotates back, with the `layout`, `table` and
/// `head_size` of rotary_forward.
template <class T>
void rotary_backward(RotaryLayout layout, const RotaryTable<T>& table, Index head_size,
                     MatrixView<T> d_x);

}  // namespace masque::kernel
