// What enters the first layer, and the gradients of the tables.
#include <algorithm>
#include <complex>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/embedding.hpp"
#include "model/variants.hpp"
#include "nn/position.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

namespace {

void check_rows(std::string_view what, std::span<const Index> rows, Index limit) {
  for (const Index row : rows) {
    if (row < 0 || row >= limit)
      throw InputError(fmt::format("{} {}, expected 0 to {}", what, row, limit - 1));
  }
}

}  // namespace

template <class T>
void EncoderRun<T>::embedding_sum(Stream& stream, MatrixView<T> x) const {
  const ParameterMap& slots = encoder_.slots_;
  kernel::embedding_forward<T, TokenId>(value(slots.weight(Role::kWordTable)), stream.ids, x);
  if (design_.embedding_scale != 1) {
    std::for_each_n(x.data, x.rows * x.columns,
                    [&](T& number) { number *= static_cast<T>(design_.embedding_scale); });
  }
  if (&stream == &tape_.content) {
    for (std::size_t k = 0; k < chunk_.given.size(); ++k) {
      const T* from = std::as_const(tape_.given).view().row(static_cast<Index>(k));
      std::copy_n(from, x.columns, x.row(chunk_.given[k]));
    }
  }
  if (const Index table = slots.weight(Role::kSegmentTable); table != ParameterMap::kNone) {
    stream.segments.resize(static_cast<std::size_t>(x.rows), 0);
    check_rows("segment", stream.segments, value(table).rows);
    kernel::embedding_add<T, Index>(value(table), stream.segments, x);
  }
  if (const Index table = slots.weight(Role::kPositionTable); table != ParameterMap::kNone) {
    std::vector<Index> rows(stream.positions);
    for (Index& row : rows) row += design_.position_offset;
    check_rows("position", rows, value(table).rows);
    kernel::embedding_add<T, Index>(value(table), rows, x);
  } else if (design_.position == model::PositionType::kSinusoidal) {
    const std::vector<double> places(stream.positions.begin(), stream.positions.end());
    Matrix<T> waves(x.rows, x.columns);
    nn::sinusoidal_table<T>(places, design_.sinusoidal_interleaved, waves.view());
    kernel::add_to<T>(waves.view(), x);
  }
}

template <class T>
void EncoderRun<T>::embed(Stream& stream) {
  const Index n = stream.count();
  const Index width = design_.embedding_size;
  for (const TokenId id : stream.ids) {
    if (id < 0 || id >= design_.vocab_size) {
      throw InputError(fmt::format("token id {}, expected 0 to {}", id, design_.vocab_size - 1));
    }
  }
  stream.embedded.resize(n, width);
  embedding_sum(stream, stream.embedded.view());
  if (encoder_.scheme_ != nullptr && encoder_.scheme_->facts().input) {
    for (Index s = 0; s < stream.sequences(); ++s) {
      const Index begin = stream.begins[static_cast<std::size_t>(s)];
      const Index count = stream.begins[static_cast<std::size_t>(s) + 1] - begin;
      terms(0, stream, stream, s, false)->input(stream.embedded.view().middle_rows(begin, count));
    }
  }
  stream.normed.resize(n, width);
  if (design_.embedding_norm) {
    norm(Role::kEmbeddingNorm, 0, *design_.embedding_norm, stream.embedded.view(),
         stream.normed.view());
  } else {
    std::copy_n(stream.embedded.data(), n * width, stream.normed.data());
  }
  drop(DropoutPlace::kEmbedding, 0, stream, false, stream.normed.view());
  stream.x[0].resize(n, design_.hidden_size);
  if (!encoder_.projection_.empty()) {
    encoder_.projection_.forward(stream.normed.view(), stream.x[0].view());
  } else {
    std::copy_n(stream.normed.data(), n * width, stream.x[0].data());
  }
}

template <class T>
void EncoderRun<T>::embed_backward(Stream& stream, MatrixView<T> d_x) {
  const ParameterMap& slots = encoder_.slots_;
  const Index n = stream.count();
  const Index width = design_.embedding_size;
  Matrix<T> d_normed = Matrix<T>::zero(n, width);
  if (!encoder_.projection_.empty()) {
    encoder_.projection_.backward(stream.normed.view(), d_x, false, d_normed.view());
  } else {
    kernel::add_to<T>(d_x, d_normed.view());
  }
  drop(DropoutPlace::kEmbedding, 0, stream, true, d_normed.view());
  Matrix<T> d_embedded = Matrix<T>::zero(n, width);
  if (design_.embedding_norm) {
    norm_backward(Role::kEmbeddingNorm, 0, *design_.embedding_norm, stream.embedded.view(),
                  d_normed.view(), d_embedded.view());
  } else {
    std::swap(d_embedded, d_normed);
  }
  if (encoder_.scheme_ != nullptr && encoder_.scheme_->facts().input) {
    // The tables' sum, which the scheme changed in place.
    Matrix<T> sum(n, width);
    embedding_sum(stream, sum.view());
    for (Index s = 0; s < stream.sequences(); ++s) {
      const Index begin = stream.begins[static_cast<std::size_t>(s)];
      const Index count = stream.begins[static_cast<std::size_t>(s) + 1] - begin;
      terms(0, stream, stream, s, true)
          ->input_backward(sum.view().middle_rows(begin, count),
                           d_embedded.view().middle_rows(begin, count));
    }
  }
  if (const Index table = slots.weight(Role::kPositionTable); table != ParameterMap::kNone) {
    std::vector<Index> rows(stream.positions);
    for (Index& row : rows) row += design_.position_offset;
    kernel::embedding_backward<T, Index>(rows, d_embedded.view(), gradient(table));
  }
  if (const Index table = slots.weight(Role::kSegmentTable); table != ParameterMap::kNone)
    kernel::embedding_backward<T, Index>(stream.segments, d_embedded.view(), gradient(table));
  if (&stream == &tape_.content && !chunk_.given.empty()) {
    tape_.d_given.resize(std::ssize(chunk_.given), width);
    for (std::size_t k = 0; k < chunk_.given.size(); ++k) {
      T* from = d_embedded.view().row(chunk_.given[k]);
      std::copy_n(from, width, tape_.d_given.view().row(static_cast<Index>(k)));
      std::fill_n(from, width, T{});
    }
  }
  if (design_.embedding_scale != 1) {
    for (T& number : d_embedded.span()) number *= static_cast<T>(design_.embedding_scale);
  }
  kernel::embedding_backward<T, TokenId>(stream.ids, d_embedded.view(),
                                         gradient(slots.weight(Role::kWordTable)));
}

#define MASQUE_INSTANTIATE(T)                  \
  template void EncoderRun<T>::embed(Stream&); \
  template void EncoderRun<T>::embed_backward(Stream&, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
template void EncoderRun<std::complex<double>>::embed(Stream&);
#undef MASQUE_INSTANTIATE

}  // namespace masque::train
