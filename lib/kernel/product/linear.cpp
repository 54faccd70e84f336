#include "kernel/product/linear.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/activation_rows.hpp"
#include "kernel/onednn/matmul_onednn.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/linear_reference.hpp"
#include "kernel/product/product_rows.hpp"
#include "kernel/product/streamed_weights.hpp"
#include "kernel/product/strip_weights.hpp"
#include "tensor/row_stack.hpp"

namespace masque::kernel {
namespace {

constexpr onednn::PanelShape kReferencePanel{64, 8};
/// Rows whose part of the inputs stays in the second-level cache.
constexpr onednn::PanelShape kStripPanel{96, kTileRows};
static_assert(Linear<float>::kColumnBlock == onednn::kBlockColumns);

/// Operations that are worth a thread.
constexpr double kWork = 1e6;

/// Rows cut into panels of nearly equal size.
struct Panels {
  Panels(Index row_count, onednn::PanelShape shape)
      : rows(row_count), count(divide_up(row_count, shape.rows)), height(shape.step) {
    if (count == 0) return;
    height = round_up(divide_up(rows, count), shape.step);
    count = divide_up(rows, height);
  }
  Index first(Index panel) const { return panel * height; }
  Index size(Index panel) const { return std::min(height, rows - first(panel)); }

  Index rows;
  Index count;
  Index height;
};

Index block_count(Index columns) {
  return (columns + Linear<float>::kColumnBlock - 1) / Linear<float>::kColumnBlock;
}

/// Calls work(panel, begin, end) for runs of blocks of each panel, in parallel.
template <class Work>
void for_blocks(const Panels& panels, Index blocks, Index inputs, const Work& work) {
  const double block_work = 2.0 * static_cast<double>(panels.height) *
                            static_cast<double>(Linear<float>::kColumnBlock * (inputs + 1));
  const auto grain = static_cast<Index>(kWork / block_work) + 1;
  parallel_ranges(panels.count * blocks, grain, [&](Index begin, Index end) {
    while (begin < end) {
      const Index panel = begin / blocks;
      const Index stop = std::min(end, (panel + 1) * blocks);
      work(panel, begin - panel * blocks, stop - panel * blocks);
      begin = stop;
    }
  });
}

template <class T>
Index stacked_rows(std::span<const MatrixView<const T>> weights) {
  return std::accumulate(weights.begin(), weights.end(), Index{0},
                         [](Index sum, const auto& w) { return sum + w.rows; });
}

/// Views in memory as one source.
RowStack stack_of(std::span<const MatrixView<const float>> views) {
  std::vector<std::shared_ptr<const RowSource>> sources;
  sources.reserve(views.size());
  for (const auto& view : views) sources.push_back(std::make_shared<RowsInMemory>(view));
  return RowStack(std::move(sources));
}

}  // namespace

/// The reference: weights transposed to (in, out), so that loops over outputs run along memory.
template <class T>
struct Linear<T>::State {
  State(std::span<const MatrixView<const T>> parts, Precision precision)
      : inputs(parts[0].columns), outputs(stacked_rows(parts)), weight(inputs, outputs) {
    MASQUE_CHECK(precision == Precision::kF64);
    Index first = 0;
    for (const auto& part : parts) {
      MASQUE_CHECK(part.columns == inputs);
      for (Index j = 0; j < part.rows; ++j) {
        for (Index k = 0; k < inputs; ++k) weight.view().at(k, first + j) = part.at(j, k);
      }
      first += part.rows;
    }
  }

  void run(MatrixView<const T> x, Index first, MatrixView<T> y) const {
    const Panels panels(x.rows, kReferencePanel);
    for_blocks(panels, block_count(y.columns), inputs, [&](Index panel, Index begin, Index end) {
      const Index column = begin * kColumnBlock;
      const Index columns = std::min(end * kColumnBlock, y.columns) - column;
      const auto from = x.middle_rows(panels.first(panel), panels.size(panel));
      const auto to =
          y.middle_rows(panels.first(panel), panels.size(panel)).middle_columns(column, columns);
      for (Index i = 0; i < to.rows; ++i) std::fill_n(to.row(i), columns, T(0));
      add_product(from, weight.view().middle_columns(first + column, columns), to);
      for (Index i = 0; i < to.rows; ++i) {
        for (Index j = 0; !bias.empty() && j < columns; ++j) {
          to.at(i, j) += bias[static_cast<std::size_t>(first + column + j)];
        }
        activate_row(activation, to.row(i), to.row(i), columns);
      }
    });
  }

  Index inputs;
  Index outputs;
  Matrix<T> weight;
  std::vector<T> bias;
  Activation activation = Activation::kNone;
};

template <>
struct Linear<float>::State {
  State(std::span<const MatrixView<const float>> parts, Precision precision)
      : inputs(parts[0].columns), outputs(stacked_rows(parts)) {
    if (!pack_strips(stack_of(parts), precision)) packed.emplace(parts, precision);
  }
  State(std::shared_ptr<const RowSource> weights, Precision precision, WeightStorage storage)
      : inputs(weights->columns()), outputs(weights->rows()) {
    if (storage == WeightStorage::kStreamed) {
      streamed.emplace(std::move(weights), precision);
    } else if (!pack_strips(*weights, precision) && storage == WeightStorage::kStrips) {
      strips.emplace(*weights, precision);
    } else if (!strips) {
      Matrix<float> all(outputs, inputs);
      constexpr Index kRows = 64;
      parallel_items(divide_up(outputs, kRows), [&](Index p) {
        const Index first = p * kRows;
        weights->read(first, all.view().middle_rows(first, std::min(kRows, outputs - first)));
      });
      packed.emplace(std::array{std::as_const(all).view()}, precision);
    }
  }

  /// Takes our own product if it is the one for these weights. Narrow ones are always ours.
  bool pack_strips(const RowSource& weights, Precision precision) {
    if (StripWeights::tries_narrow(outputs, inputs, precision))
      strips = StripWeights::narrow(weights);
    if (!strips && StripWeights::preferred(outputs, inputs, precision))
      strips.emplace(weights, precision);
    return strips.has_value();
  }

  void run(MatrixView<const float> x, Index first, MatrixView<float> y) const {
    if (strips) {
      run_strips(x, first, y);
    } else if (streamed) {
      streamed->multiply(x, first, y);
      for_rows(y.rows, y.columns, [&](Index i) {
        finish_row(activation, y.row(i), bias.empty() ? nullptr : bias.data() + first, y.row(i),
                   y.columns);
      });
    } else {
      run_packed(x, first, y);
    }
  }

  /// By our own product.
  void run_strips(MatrixView<const float> x, Index first, MatrixView<float> y) const {
    const Panels panels(x.rows, kStripPanel);
    for_blocks(panels, block_count(y.columns), inputs, [&](Index p, Index begin, Index end) {
      const auto from = x.middle_rows(panels.first(p), panels.size(p));
      for (Index b = begin; b < end; ++b) {
        const Index column = b * kColumnBlock;
        const auto to = y.middle_rows(panels.first(p), panels.size(p))
                            .middle_columns(column, std::min(kColumnBlock, y.columns - column));
        strips->multiply(from, first + column, to);
        const float* added = bias.empty() ? nullptr : bias.data() + first + column;
        if (added == nullptr && activation == Activation::kNone) continue;
        for (Index i = 0; i < to.rows; ++i) {
          finish_row(activation, to.row(i), added, to.row(i), to.columns);
        }
      }
    });
  }

  /// By oneDNN.
  void run_packed(MatrixView<const float> x, Index first, MatrixView<float> y) const {
    const onednn::PackedWeights& weight = *packed;
    const Panels panels(x.rows, weight.panel_shape());
    const Index first_block = first / kColumnBlock;
    for_blocks(panels, block_count(y.columns), inputs, [&](Index p, Index begin, Index end) {
      const auto panel = weight.panel(x.middle_rows(panels.first(p), panels.size(p)));
      for (Index b = begin; b < end; ++b) {
        const float* product = weight.multiply(panel, first_block + b);
        const Index stride = weight.block_stride(first_block + b);
        const Index column = b * kColumnBlock;
        const float* added = bias.empty() ? nullptr : bias.data() + first + column;
        for (Index i = 0; i < panel.rows; ++i) {
          finish_row(activation, product + i * stride, added, y.row(panels.first(p) + i) + column,
                     weight.block_columns(first_block + b));
        }
      }
    });
  }

  Index inputs;
  Index outputs;
  // One of these.
  std::optional<StripWeights> strips;
  std::optional<onednn::PackedWeights> packed;
  std::optional<StreamedWeights> streamed;
  std::vector<float> bias;
  Activation activation = Activation::kNone;
};

template <class T>
Linear<T>::Linear(std::span<const MatrixView<const T>> weights, std::span<const T> bias,
                  Precision precision, Activation activation) {
  MASQUE_CHECK(!weights.empty());
  adopt(std::make_shared<State>(weights, precision), bias, activation);
}

template <class T>
void Linear<T>::adopt(std::shared_ptr<State> state, std::span<const T> bias,
                      Activation activation) {
  MASQUE_CHECK(bias.empty() || static_cast<Index>(bias.size()) == state->outputs);
  state->bias.assign(bias.begin(), bias.end());
  state->activation = activation;
  state_ = std::move(state);
}

template <>
Linear<float>::Linear(std::shared_ptr<const RowSource> weights, std::span<const float> bias,
                      Precision precision, Activation activation, WeightStorage storage) {
  adopt(std::make_shared<State>(std::move(weights), precision, storage), bias, activation);
}

template <class T>
Index Linear<T>::inputs() const {
  return state_ == nullptr ? 0 : state_->inputs;
}

template <class T>
Index Linear<T>::outputs() const {
  return state_ == nullptr ? 0 : state_->outputs;
}

template <class T>
void Linear<T>::forward(MatrixView<const T> x, MatrixView<T> y) const {
  MASQUE_CHECK(y.columns == outputs());
  forward_columns(0, x, y);
}

template <class T>
void Linear<T>::forward_columns(Index first, MatrixView<const T> x, MatrixView<T> y) const {
  MASQUE_CHECK(state_ != nullptr && x.columns == inputs() && x.rows == y.rows);
  MASQUE_CHECK(first >= 0 && first % kColumnBlock == 0 && first + y.columns <= outputs());
  MASQUE_CHECK(y.columns % kColumnBlock == 0 || first + y.columns == outputs());
  state_->run(x, first, y);
}

template class Linear<float>;
template class Linear<double>;
template class Linear<std::complex<double>>;

// Products of plain matrices.

namespace {

constexpr Index kPanelRows = 64;

/// Calls work(begin, end) for panels of rows that do not depend on the number of threads.
template <class Work>
void for_panels(Index rows, Index work_per_row, const Work& work) {
  const Index panels = divide_up(rows, kPanelRows);
  const Index grain = 500000 / (kPanelRows * std::max<Index>(work_per_row, 1)) + 1;
  parallel_ranges(panels, grain, [&](Index begin, Index end) {
    for (Index p = begin; p < end; ++p) {
      work(p * kPanelRows, std::min((p + 1) * kPanelRows, rows));
    }
  });
}

template <class T>
Matrix<T> transposed(MatrixView<const T> x) {
  constexpr Index kTile = 16;
  Matrix<T> result(x.columns, x.rows);
  for (Index i0 = 0; i0 < x.rows; i0 += kTile) {
    for (Index j = 0; j < x.columns; ++j) {
      T* to = result.view().row(j);
      for (Index i = i0; i < std::min(i0 + kTile, x.rows); ++i) to[i] = x.at(i, j);
    }
  }
  return result;
}

template <class T>
void zero(MatrixView<T> y) {
  for (Index i = 0; i < y.rows; ++i) std::fill_n(y.row(i), y.columns, T(0));
}

/// y += x W, weight (in, out).
template <class T>
void add_matmul(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  for_panels(x.rows, x.columns * y.columns, [&](Index begin, Index end) {
    add_product(x.middle_rows(begin, end - begin), weight, y.middle_rows(begin, end - begin));
  });
}

/// y = x W or x Wᵀ + beta y, or y += xᵀ W; rows of y in panels.
void float_product(onednn::Gemm g) {
  const onednn::Gemm whole = g;
  for_panels(whole.m, whole.n * whole.k, [&](Index begin, Index end) {
    onednn::Gemm part = whole;
    part.m = end - begin;
    part.a += whole.transpose_a ? begin : begin * whole.a_stride;
    part.c += begin * whole.c_stride;
    onednn::gemm(part);
  });
}

}  // namespace

template <class T>
void matmul_forward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  MASQUE_CHECK(x.columns == weight.columns && x.rows == y.rows && weight.rows == y.columns);
  if (y.empty()) return;
  if constexpr (std::is_same_v<T, float>) {
    float_product({false, true, x.rows, y.columns, x.columns, x.data, x.stride, weight.data,
                   weight.stride, 0, y.data, y.stride});
  } else {
    zero(y);
    const Matrix<T> across = transposed(weight);
    add_matmul<T>(x, across.view(), y);
  }
}

template <class T>
void matmul_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> d_y,
                     MatrixView<T> d_x, MatrixView<T> d_weight) {
  MASQUE_CHECK(d_y.rows == x.rows && d_y.columns == weight.rows && x.columns == weight.columns);
  if (d_x.data != nullptr && !d_x.empty()) {
    MASQUE_CHECK(d_x.rows == x.rows && d_x.columns == x.columns);
    if constexpr (std::is_same_v<T, float>) {
      float_product({false, false, x.rows, x.columns, d_y.columns, d_y.data, d_y.stride,
                     weight.data, weight.stride, 1, d_x.data, d_x.stride});
    } else {
      add_matmul(d_y, weight, d_x);
    }
  }
  if (d_weight.data != nullptr && !d_weight.empty()) {
    MASQUE_CHECK(d_weight.rows == weight.rows && d_weight.columns == weight.columns);
    if constexpr (std::is_same_v<T, float>) {
      float_product({true, false, weight.rows, weight.columns, x.rows, d_y.data, d_y.stride, x.data,
                     x.stride, 1, d_weight.data, d_weight.stride});
    } else {
      const Matrix<T> across = transposed(d_y);
      add_matmul<T>(across.view(), x, d_weight);
    }
  }
}

template <class T>
void matmul_plain(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  MASQUE_CHECK(x.columns == weight.rows && x.rows == y.rows && weight.columns == y.columns);
  if (y.empty()) return;
  if constexpr (std::is_same_v<T, float>) {
    float_product({false, false, x.rows, y.columns, x.columns, x.data, x.stride, weight.data,
                   weight.stride, 0, y.data, y.stride});
  } else {
    zero(y);
    add_matmul(x, weight, y);
  }
}

#define MASQUE_INSTANTIATE(T)                                                                     \
  template void matmul_forward<T>(MatrixView<const T>, MatrixView<const T>, MatrixView<T>);       \
  template void matmul_backward<T>(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, \
                                   MatrixView<T>, MatrixView<T>);                                 \
  template void matmul_plain<T>(MatrixView<const T>, MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
