// The backward pass to the tables, and what only a pass that trains does to the input.
#include <algorithm>
#include <complex>
#include <utility>

#include "kernel/embedding.hpp"
#include "model/forward/embedding_sum.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

template <class T>
model::EmbeddingTables<T> EncoderRun<T>::tables() const {
  const ParameterMap& map = encoder_.map_;
  return {value(map.weight(Role::kWordTable)), value(map.weight(Role::kSegmentTable)),
          value(map.weight(Role::kPositionTable))};
}

template <class T>
void EncoderRun<T>::replace_words(const Stream& stream, MatrixView<T> x) const {
  if (&stream != &tape_.content) return;
  for (std::size_t k = 0; k < chunk_.given.size(); ++k) {
    const T* from = std::as_const(tape_.given).view().row(static_cast<Index>(k));
    std::copy_n(from, x.columns, x.row(chunk_.given[k]));
  }
}

template <class T>
bool EncoderRun<T>::acts_on_input() const {
  return encoder_.scheme_ != nullptr && encoder_.scheme_->facts().input;
}

template <class T>
void EncoderRun<T>::embed_backward(Stream& stream, MatrixView<T> d_x) {
  const ParameterMap& map = encoder_.map_;
  const Index n = stream.count();
  const Index width = design_.embedding_size;
  Matrix<T> d_normed = Matrix<T>::zero(n, width);
  if (!encoder_.projection_.empty()) {
    encoder_.projection_.backward(stream.normed.view(), d_x, false, d_normed.view());
  } else {
    kernel::add_to<T>(d_x, d_normed.view());
  }
  drop_backward(DropoutPlace::kEmbedding, 0, stream, d_normed.view());
  Matrix<T> d_embedded = Matrix<T>::zero(n, width);
  if (design_.embedding_norm) {
    encoder_.embedding_norm_.backward(stream.embedded.view(), d_normed.view(), d_embedded.view());
  } else {
    std::swap(d_embedded, d_normed);
  }
  if (acts_on_input()) {
    // The tables' sum, which the scheme changed in place.
    Matrix<T> sum(n, width);
    model::embed_words<T>(design_, tables(), stream.ids, sum.view());
    replace_words(stream, sum.view());
    model::add_segments_and_positions<T>(design_, tables(), stream, sum.view());
    for (Index s = 0; s < stream.sequences(); ++s) {
      if (stream.count(s) == 0) continue;
      terms(0, stream, stream, s, true)
          ->input_backward(sum.view().middle_rows(stream.begin(s), stream.count(s)),
                           d_embedded.view().middle_rows(stream.begin(s), stream.count(s)));
    }
  }
  if (const Index table = map.weight(Role::kPositionTable); table != ParameterMap::kNone) {
    kernel::embedding_backward<T, Index>(model::table_positions(design_, stream), d_embedded.view(),
                                         gradient(table));
  }
  if (const Index table = map.weight(Role::kSegmentTable); table != ParameterMap::kNone) {
    kernel::embedding_backward<T, Index>(model::segment_rows(stream), d_embedded.view(),
                                         gradient(table));
  }
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
                                         gradient(map.weight(Role::kWordTable)));
}

#define MASQUE_INSTANTIATE(T)                                                     \
  template model::EmbeddingTables<T> EncoderRun<T>::tables() const;               \
  template void EncoderRun<T>::replace_words(const Stream&, MatrixView<T>) const; \
  template bool EncoderRun<T>::acts_on_input() const;
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE
template void EncoderRun<float>::embed_backward(Stream&, MatrixView<float>);
template void EncoderRun<double>::embed_backward(Stream&, MatrixView<double>);

}  // namespace masque::train
