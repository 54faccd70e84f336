// What attention with relative positions projects for its distances, forward and backward: XLNet's
// sinusoids, DeBERTa's table. Made once a chunk, projected once a layer and stream.
#include <complex>
#include <utility>

#include "model/forward/position_terms.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

template <class T>
void EncoderRun<T>::make_distances() {
  tape_.distances = Matrix<T>();
  if (design_.position == model::PositionType::kXlnet) {
    auto found = model::xlnet_distances<T>(design_, chunk_.positions, chunk_.begins);
    tape_.first_distance = found.first;
    tape_.distances = std::move(found.waves);
  } else if (design_.position == model::PositionType::kDisentangled) {
    const MatrixView<const T> table = value(encoder_.map_.weight(Role::kRelativeTable));
    tape_.distances = Matrix<T>::copy(table);
    if (design_.relative_norm) encoder_.relative_norm_.forward(table, tape_.distances.view());
  }
}

template <class T>
void EncoderRun<T>::distances_backward() {
  if (design_.position != model::PositionType::kDisentangled) return;
  const Index table = encoder_.map_.weight(Role::kRelativeTable);
  const MatrixView<T> d_table = gradient(table);
  if (design_.relative_norm) {
    Matrix<T> unused;  // of a table that is frozen, unlike its norm
    if (d_table.data == nullptr) unused = Matrix<T>::zero(value(table).rows, value(table).columns);
    encoder_.relative_norm_.backward(value(table), tape_.d_distances.view(),
                                     d_table.data == nullptr ? unused.view() : d_table);
  } else if (d_table.data != nullptr) {
    kernel::add_to<T>(tape_.d_distances.view(), d_table);
  }
}

template <class T>
void EncoderRun<T>::project_distances(Index l, Stream& stream) {
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  const auto project = [&](const Dense<T>& dense, Matrix<T>& out) {
    if (dense.empty()) return;
    out.resize(tape_.distances.rows(), dense.outputs());
    dense.forward(tape_.distances.view(), out.view());
  };
  project(own.distance_key, tape.distance_keys);
  project(own.distance_query, tape.distance_queries);
}

template <class T>
void EncoderRun<T>::clear_distance_gradients(Index l) {
  const EncoderLayer<T>& own = layer(l);
  const Index rows = tape_.distances.rows();
  if (!own.distance_key.empty())
    d_distance_keys_ = zeros(kDDistanceKeys, rows, own.distance_key.outputs());
  if (!own.distance_query.empty())
    d_distance_queries_ = zeros(kDDistanceQueries, rows, own.distance_query.outputs());
}

template <class T>
void EncoderRun<T>::project_distances_backward(Index l) {
  const EncoderLayer<T>& own = layer(l);
  // XLNet's sinusoids are fixed.
  const bool trained = design_.position == model::PositionType::kDisentangled;
  const MatrixView<T> d_distances = trained ? tape_.d_distances.view() : MatrixView<T>();
  const auto back = [&](const Dense<T>& dense, MatrixView<T>& d_out) {
    if (!dense.empty()) dense.backward(tape_.distances.view(), d_out, true, d_distances);
    d_out = {};
  };
  back(own.distance_key, d_distance_keys_);
  back(own.distance_query, d_distance_queries_);
}

#define MASQUE_INSTANTIATE(T)                    \
  template void EncoderRun<T>::make_distances(); \
  template void EncoderRun<T>::project_distances(Index, Stream&);
#define MASQUE_INSTANTIATE_BACKWARD(T)                          \
  template void EncoderRun<T>::distances_backward();            \
  template void EncoderRun<T>::clear_distance_gradients(Index); \
  template void EncoderRun<T>::project_distances_backward(Index);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
