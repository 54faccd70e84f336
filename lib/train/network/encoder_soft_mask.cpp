// The detector of an encoder that masks softly, forward and backward. The mixture itself is in
// model/forward/soft_mask_forward.hpp.
#include <algorithm>
#include <complex>
#include <numeric>

#include "kernel/embedding.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

template <class T>
ExampleChunk EncoderRun<T>::detector_chunk() const {
  ExampleChunk chunk = chunk_;
  chunk.wanted.resize(chunk.ids.size());
  std::iota(chunk.wanted.begin(), chunk.wanted.end(), Index{0});
  chunk.wanted_begins = chunk.begins;
  chunk.given = chunk.wanted;
  return chunk;
}

template <class T>
DropoutOptions EncoderRun<T>::detector_dropout() const {
  DropoutOptions other = dropout_;
  other.seed = ~dropout_.seed;  // the detector's has nothing to do with that of the layers
  return other;
}

template <class T>
void EncoderRun<T>::detect(MatrixView<const T> e, MatrixView<T> logits) {
  SoftMaskTape<T>& own = tape_.soft_mask;
  const auto& detector = *encoder_.detector_;
  if (!own.detector) own.detector = std::make_unique<Tape<T>>();
  kernel::copy_rows<T>(e, model::resized(own.detector->given, e.rows, e.columns));
  own.last.resize(e.rows, detector.encoder.design().hidden_size);
  detector.encoder.forward(detector_chunk(), detector_dropout(), *own.detector, own.last.view());
  detector.decoder.forward(own.last.view(), logits);
  own.d_logits = Matrix<T>::zero(e.rows, 1);
}

template <class T>
void EncoderRun<T>::soft_mask_backward(MatrixView<const T> d_last) {
  SoftMaskTape<T>& own = tape_.soft_mask;
  const auto& detector = *encoder_.detector_;
  const MatrixView<const T> d_mixed = tape_.d_content.view();
  const Index n = d_mixed.rows;
  const Index width = d_mixed.columns;
  const MatrixView<T> d_plain = model::resized(own.d_plain, n, width);
  const MatrixView<T> d_masked = model::resized(own.d_masked, n, width);
  const MatrixView<T> d_logits = own.d_logits.view();
  const MatrixView<T> mask = own.masked.x[0].view();
  const MatrixView<T> plain = own.plain.view();
  const MatrixView<T> probabilities = own.probabilities.view();
  kernel::for_rows(n, width, [&](Index i) {
    const T p = probabilities.at(i, 0);
    T d_p = 0;
    for (Index c = 0; c < width; ++c) {
      const T d = d_mixed.at(i, c);
      d_p += d * (mask.at(i, c) - plain.at(i, c));
      d_masked.at(i, c) = p * d;
      d_plain.at(i, c) = (T(1) - p) * d;
    }
    d_logits.at(i, 0) += d_p * p * (T(1) - p);
  });
  kernel::embedding_backward<T, Index>(chunk_.wanted, d_last, d_plain);
  const bool embeddings =
      encoder_.learns_embeddings_ || (tape_.wants_given && !chunk_.given.empty());
  const MatrixView<T> d_states = model::resized(own.d_last, n, own.last.columns());
  detector.decoder.backward(own.last.view(), d_logits, false, d_states);
  own.detector->wants_given = embeddings;
  detector.encoder.backward(detector_chunk(), detector_dropout(), *own.detector, d_states);
  if (!embeddings) return;
  kernel::add_to<T>(own.detector->d_given.view(), d_plain);
  embed_backward(own.masked, d_masked);
  embed_backward(tape_.content, d_plain);
}

#define MASQUE_INSTANTIATE(T)                                      \
  template ExampleChunk EncoderRun<T>::detector_chunk() const;     \
  template DropoutOptions EncoderRun<T>::detector_dropout() const; \
  template void EncoderRun<T>::detect(MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE
template void EncoderRun<float>::soft_mask_backward(MatrixView<const float>);
template void EncoderRun<double>::soft_mask_backward(MatrixView<const double>);

}  // namespace masque::train
