// The row loops of differentiable attention: weights from what was saved of a row, and the
// gradients of scores. Vectors as in tile.hpp: widths are multiples of kLanes, rows begin at
// multiples of 64 bytes, unless said otherwise.
#pragma once

#include <span>

#include "nn/attention/tile.hpp"
#include "nn/normalizer.hpp"

namespace masque::nn::tile {

/// Turns the rows of scores `x` into weights by `map`: e^(x − n), max(x, 0)² / n or 1 / (1 + e^−x)
/// / n with n = numbers[row], of `numbers`. −∞ becomes 0, and so does every row whose number is +∞.
template <class T>
void weights_of_scores(ScoreMap map, std::span<const T> numbers, MatrixView<T> x);

/// What the gradients of a row of scores need.
template <class T>
struct GradientRow {
  T along = 0;        ///< inner product of d_weights and the weights
  T divisor = 1;      ///< divisor of the numerators; not read for kExp
  T temperature = 1;  ///< temperature of the scores
};

/// Turns `d`, gradients by the `weights` of a normalizer with `map` and `divisor`, into those by
/// the scores; 0 where a weight is 0. `rows` has one entry for each row of d.
template <class T>
void score_gradients(ScoreMap map, Divisor divisor, MatrixView<const T> weights,
                     std::span<const GradientRow<T>> rows, MatrixView<T> d);

/// `out` ← `x` ⊙ `y`; out may be one of them.
template <class T>
void multiply_elements(MatrixView<const T> x, MatrixView<const T> y, MatrixView<T> out);

/// Row r of `to` += factors[r] · row r of `from`, with one of `factors` for each
/// row. Any width and address.
template <class T>
void add_scaled_rows(MatrixView<const T> from, std::span<const T> factors, MatrixView<T> to);

/// `x` · `y` of two rows of one width, at any address, in kLanes sums.
template <class T>
T inner_product(std::span<const T> x, std::span<const T> y);

}  // namespace masque::nn::tile
