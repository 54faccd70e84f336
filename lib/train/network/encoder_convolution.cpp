// The backward pass through the convolution next to the first layer of DeBERTa v2.
#include "kernel/activation.hpp"
#include "model/forward/convolution_windows.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

template <class T>
void EncoderRun<T>::convolve_backward(Index l, Stream& stream, MatrixView<const T> x,
                                      MatrixView<const T> d_y, MatrixView<T> d_sum,
                                      MatrixView<T> d_x) {
  LayerTape<T>& tape = memory(l, stream);
  zero_rows<T>(d_sum);
  layer(l).convolution_norm.backward(tape.convolution_sum.view(), d_y, d_sum);
  Matrix<T> d_convolved = Matrix<T>::zero(x.rows, x.columns);
  kernel::activation_backward<T>(design_.convolution_activation, tape.convolved.view(), d_sum,
                                 d_convolved.view());
  Matrix<T> windows(x.rows, x.columns * design_.convolution_size);
  model::convolution_windows<T>(x, stream.begins, design_.convolution_size, windows.view());
  Matrix<T> d_windows(windows.rows(), windows.columns());
  layer(l).convolution.backward(windows.view(), d_convolved.view(), false, d_windows.view());
  model::convolution_windows_backward<T>(d_windows.view(), stream.begins, design_.convolution_size,
                                         d_x);
}

template void EncoderRun<float>::convolve_backward(Index, Stream&, MatrixView<const float>,
                                                   MatrixView<const float>, MatrixView<float>,
                                                   MatrixView<float>);
template void EncoderRun<double>::convolve_backward(Index, Stream&, MatrixView<const double>,
                                                    MatrixView<const double>, MatrixView<double>,
                                                    MatrixView<double>);

}  // namespace masque::train
