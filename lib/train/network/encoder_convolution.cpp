// The convolution next to the first layer of DeBERTa v2, forward and backward:
//   y ← norm(y + act(convolution(x)))
#include <complex>

#include "kernel/activation.hpp"
#include "model/convolution_windows.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

template <class T>
void EncoderRun<T>::convolve(Index l, Stream& stream, MatrixView<const T> x, MatrixView<T> y) {
  LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  Matrix<T> windows(x.rows, x.columns * design_.convolution_size);
  model::convolution_windows<T>(x, stream.begins, design_.convolution_size, windows.view());
  tape.convolved.resize(x.rows, x.columns);
  layer_of(l).convolution.forward(windows.view(), tape.convolved.view());
  tape.convolution_sum.resize(x.rows, x.columns);
  const MatrixView<T> sum = tape.convolution_sum.view();
  copy_rows<T>(tape.convolved.view(), sum);
  kernel::activation_forward<T>(design_.convolution_activation, sum);
  kernel::add_to<T>(y, sum);
  norm(Role::kConvolutionNorm, weights_of(l), design_.norm, sum, y);
}

template <class T>
void EncoderRun<T>::convolve_backward(Index l, Stream& stream, MatrixView<const T> x,
                                      MatrixView<const T> d_y, MatrixView<T> d_sum,
                                      MatrixView<T> d_x) {
  LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  zero_rows<T>(d_sum);
  norm_backward(Role::kConvolutionNorm, weights_of(l), design_.norm, tape.convolution_sum.view(),
                d_y, d_sum);
  Matrix<T> d_convolved = Matrix<T>::zero(x.rows, x.columns);
  kernel::activation_backward<T>(design_.convolution_activation, tape.convolved.view(), d_sum,
                                 d_convolved.view());
  Matrix<T> windows(x.rows, x.columns * design_.convolution_size);
  model::convolution_windows<T>(x, stream.begins, design_.convolution_size, windows.view());
  Matrix<T> d_windows(windows.rows(), windows.columns());
  layer_of(l).convolution.backward(windows.view(), d_convolved.view(), false, d_windows.view());
  model::convolution_windows_backward<T>(d_windows.view(), stream.begins, design_.convolution_size,
                                         d_x);
}

#define MASQUE_INSTANTIATE(T)                                                                  \
  template void EncoderRun<T>::convolve_backward(                                              \
      Index, Stream&, MatrixView<const T>, MatrixView<const T>, MatrixView<T>, MatrixView<T>); \
  template void EncoderRun<T>::convolve(Index, Stream&, MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
template void EncoderRun<std::complex<double>>::convolve(Index, Stream&,
                                                         MatrixView<const std::complex<double>>,
                                                         MatrixView<std::complex<double>>);
#undef MASQUE_INSTANTIATE

}  // namespace masque::train
