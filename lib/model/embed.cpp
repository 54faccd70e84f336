// What enters the first layer.
#include "kernel/embedding.hpp"
#include "model/pass.hpp"
#include "nn/position.hpp"

namespace masque::model {

template <class T>
std::span<const TokenId> Pass<T>::ids() const {
  return std::span(batch_.ids)
      .subspan(static_cast<std::size_t>(chunk_.first_row), static_cast<std::size_t>(chunk_.rows));
}

template <class T>
Stream<T> Pass<T>::all_rows() const {
  Stream<T> stream;
  const auto first = static_cast<std::ptrdiff_t>(chunk_.first_row);
  stream.x = Matrix<T>(chunk_.rows, design_.hidden_size);
  stream.begins = chunk_.begins;
  stream.positions.assign(batch_.positions.begin() + first,
                          batch_.positions.begin() + first + chunk_.rows);
  if (!batch_.segments.empty()) {
    stream.segments.assign(batch_.segments.begin() + first,
                           batch_.segments.begin() + first + chunk_.rows);
  }
  return stream;
}

template <class T>
Stream<T> Pass<T>::wanted_rows(StreamKind kind) const {
  Stream<T> stream;
  stream.kind = kind;
  stream.rows = chunk_.wanted;
  stream.begins = chunk_.wanted_begins;
  stream.x = Matrix<T>(static_cast<Index>(stream.rows.size()), design_.hidden_size);
  stream.positions.reserve(stream.rows.size());
  for (const Index row : stream.rows) {
    stream.positions.push_back(content_.positions[static_cast<std::size_t>(row)]);
  }
  if (!content_.segments.empty()) {
    stream.segments.reserve(stream.rows.size());
    for (const Index row : stream.rows) {
      stream.segments.push_back(content_.segments[static_cast<std::size_t>(row)]);
    }
  }
  return stream;
}

template <class T>
void Pass<T>::copy_rows(const Stream<T>& from, Stream<T>& to) const {
  if (to.kind == StreamKind::kContent) {
    to.x = Matrix<T>::copy(from.x.view());
  } else {
    kernel::embedding_forward<T, Index>(from.x.view(), to.rows, to.x.view());
  }
}

template <class T>
void Pass<T>::embed(std::span<const TokenId> tokens, Stream<T>& stream) const {
  const Index n = stream.count();
  const Index width = design_.embedding_size;
  const bool projected = !model_.embedding_projection.empty();
  Matrix<T> narrow(projected ? n : 0, width);
  const MatrixView<T> x = projected ? narrow.view() : stream.x.view();
  kernel::embedding_forward<T, TokenId>(model_.word_table.view, tokens, x);
  if (design_.embedding_scale != 1) {
    for (Index i = 0; i < n; ++i) {
      for (T& value : x.row_span(i)) value *= static_cast<T>(design_.embedding_scale);
    }
  }
  if (model_.segment_table) {
    // Without token types all are of type 0.
    const std::vector<Index> none(stream.segments.empty() ? static_cast<std::size_t>(n) : 0, 0);
    kernel::embedding_add<T, Index>(model_.segment_table.view,
                                    stream.segments.empty() ? none : stream.segments, x);
  }
  if (model_.position_table) {
    std::vector<Index> rows(stream.positions);
    for (Index& row : rows) row += design_.position_offset;
    kernel::embedding_add<T, Index>(model_.position_table.view, rows, x);
  } else if (design_.position == PositionType::kSinusoidal) {
    const std::vector<double> places(stream.positions.begin(), stream.positions.end());
    Matrix<T> table(n, width);
    nn::sinusoidal_table<T>(places, design_.sinusoidal_interleaved, table.view());
    kernel::add_to<T>(table.view(), x);
  }
  if (model_.scheme_facts.input) act_on_input(stream, x);
  if (model_.embedding_norm.present) model_.embedding_norm.forward(x, x);
  if (projected) model_.embedding_projection.forward(x, stream.x.view());
}

template std::span<const TokenId> Pass<float>::ids() const;
template Stream<float> Pass<float>::all_rows() const;
template Stream<float> Pass<float>::wanted_rows(StreamKind) const;
template void Pass<float>::copy_rows(const Stream<float>&, Stream<float>&) const;
template void Pass<float>::embed(std::span<const TokenId>, Stream<float>&) const;
template std::span<const TokenId> Pass<double>::ids() const;
template Stream<double> Pass<double>::all_rows() const;
template Stream<double> Pass<double>::wanted_rows(StreamKind) const;
template void Pass<double>::copy_rows(const Stream<double>&, Stream<double>&) const;
template void Pass<double>::embed(std::span<const TokenId>, Stream<double>&) const;

}  // namespace masque::model
