// A mixer in place of attention, forward and backward.
#include <complex>

#include "train/network/encoder_run.hpp"

namespace masque::train {

namespace {

/// A mixer's problem for one sequence; `parameters` must stay.
template <class T>
nn::MixerProblem<T> mixer_problem(const nn::MixerShape& shape, MatrixView<const T> x,
                                  std::span<const MatrixView<const T>> parameters,
                                  const mask::BlockMap* blocks) {
  nn::MixerProblem<T> problem;
  problem.shape = shape;
  problem.x = x;
  problem.parameters = parameters;
  problem.blocks = blocks;
  return problem;
}

}  // namespace

template <class T>
void EncoderRun<T>::mix(Index l, Stream& stream, MatrixView<const T> x, MatrixView<T> y) {
  std::vector<MatrixView<const T>> parameters;
  for (std::size_t k = 0; k < encoder_.mixer_parameters_.size(); ++k) {
    parameters.push_back(
        value(encoder_.map_.weight(Role::kMixerPart, weights_of(l), static_cast<Index>(k))));
  }
  for (Index s = 0; s < stream.sequences(); ++s) {
    const Index begin = stream.begins[static_cast<std::size_t>(s)];
    const Index rows = stream.begins[static_cast<std::size_t>(s) + 1] - begin;
    encoder_.mixer_->forward(mixer_problem<T>(encoder_.mixer_shape_, x.middle_rows(begin, rows),
                                              parameters, blocks(l, stream, s)),
                             y.middle_rows(begin, rows));
  }
}

template <class T>
void EncoderRun<T>::mix_backward(Index l, Stream& stream, MatrixView<const T> x,
                                 MatrixView<const T> d_y, MatrixView<T> d_x) {
  std::vector<MatrixView<const T>> parameters;
  std::vector<MatrixView<T>> wanted;
  const std::vector<nn::MixerParameter>& list = encoder_.mixer_parameters_;
  for (std::size_t k = 0; k < list.size(); ++k) {
    const Index at = encoder_.map_.weight(Role::kMixerPart, weights_of(l), static_cast<Index>(k));
    parameters.push_back(value(at));
    wanted.push_back(list[k].trained ? gradient(at) : MatrixView<T>());
  }
  for (Index s = 0; s < stream.sequences(); ++s) {
    const Index begin = stream.begins[static_cast<std::size_t>(s)];
    const Index rows = stream.begins[static_cast<std::size_t>(s) + 1] - begin;
    nn::MixerGradients<T> gradients;
    gradients.x = d_x.middle_rows(begin, rows);
    gradients.parameters = wanted;
    encoder_.mixer_->backward(mixer_problem<T>(encoder_.mixer_shape_, x.middle_rows(begin, rows),
                                               parameters, blocks(l, stream, s)),
                              d_y.middle_rows(begin, rows), gradients);
  }
}

template void EncoderRun<float>::mix_backward(Index, Stream&, MatrixView<const float>,
                                              MatrixView<const float>, MatrixView<float>);
template void EncoderRun<double>::mix_backward(Index, Stream&, MatrixView<const double>,
                                               MatrixView<const double>, MatrixView<double>);
template void EncoderRun<float>::mix(Index, Stream&, MatrixView<const float>, MatrixView<float>);
template void EncoderRun<double>::mix(Index, Stream&, MatrixView<const double>, MatrixView<double>);
template void EncoderRun<std::complex<double>>::mix(Index, Stream&,
                                                    MatrixView<const std::complex<double>>,
                                                    MatrixView<std::complex<double>>);

}  // namespace masque::train
