#include "model/key_value_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "model/chunk.hpp"

namespace masque::model {

namespace {

/// A matrix with at least so many rows, of which the first `kept` are those of `from`.
template <class T>
void make_room(Index rows, Index columns, Index kept, Matrix<T>& matrix) {
  if (matrix.rows() >= rows) return;
  Matrix<T> larger(std::max(rows, 2 * matrix.rows()), columns);
  for (Index i = 0; i < kept; ++i)
    std::ranges::copy(matrix.view().row_span(i), larger.view().row(i));
  matrix = std::move(larger);
}

}  // namespace

template <class T>
KeyValues<T>::KeyValues(Index layers, Index sequences) : all_(static_cast<std::size_t>(sequences)) {
  for (Sequence& sequence : all_) sequence.layers.resize(static_cast<std::size_t>(layers));
}

template <class T>
void KeyValues<T>::select(std::span<const Index> from) {
  std::vector<Index> uses(all_.size());
  for (const Index s : from) ++uses[static_cast<std::size_t>(s)];
  std::vector<Sequence> chosen;
  chosen.reserve(from.size());
  for (const Index s : from) {
    Sequence& source = one(s);
    if (--uses[static_cast<std::size_t>(s)] == 0) {
      chosen.push_back(std::move(source));
      continue;
    }
    Sequence& copy = chosen.emplace_back();
    copy.positions = source.positions;
    copy.next_position = source.next_position;
    copy.segments = source.segments;
    for (const Layer& layer : source.layers)
      copy.layers.push_back(
          {Matrix<T>::copy(layer.keys.view()), Matrix<T>::copy(layer.values.view())});
  }
  all_ = std::move(chosen);
}

template <class T>
Index KeyValues<T>::next_position(Index sequence) const {
  return one(sequence).next_position;
}

template <class T>
void KeyValues<T>::extend(const Batch& batch) {
  MASQUE_CHECK(batch.sequences() == sequences());
  for (Index s = 0; s < sequences(); ++s) {
    const auto add = [&](const std::vector<Index>& values, std::vector<Index>& to) {
      const auto own = of_sequence(values, batch.begins, s);
      to.insert(to.end(), own.begin(), own.end());
      to.resize(to.size() + static_cast<std::size_t>(batch.length(s)) - own.size());
    };
    add(batch.positions, one(s).positions);
    add(batch.segments, one(s).segments);
    for (const Index position : of_sequence(batch.positions, batch.begins, s))
      one(s).next_position = std::max(one(s).next_position, position + 1);
  }
}

template <class T>
StreamRows KeyValues<T>::whole(Index first_sequence, const StreamRows& added) const {
  StreamRows rows;
  rows.begins.push_back(0);
  for (Index s = 0; s < added.sequences(); ++s) {
    const Sequence& sequence = one(first_sequence + s);
    rows.positions.insert(rows.positions.end(), sequence.positions.begin(),
                          sequence.positions.end());
    rows.segments.insert(rows.segments.end(), sequence.segments.begin(), sequence.segments.end());
    rows.begins.push_back(std::ssize(rows.positions));
  }
  return rows;
}

template <class T>
void KeyValues<T>::put(Index layer, Index sequence, MatrixView<const T> keys,
                       MatrixView<const T> values) {
  const Index length = this->length(sequence);
  const Index before = length - keys.rows;
  Layer& own = this->layer(layer, sequence);
  make_room(length, keys.columns, before, own.keys);
  make_room(length, values.columns, before, own.values);
  for (Index i = 0; i < keys.rows; ++i) {
    std::ranges::copy(keys.row_span(i), own.keys.view().row(before + i));
    std::ranges::copy(values.row_span(i), own.values.view().row(before + i));
  }
}

template <class T>
MatrixView<T> KeyValues<T>::keys(Index layer, Index sequence) {
  return this->layer(layer, sequence).keys.view().middle_rows(0, length(sequence));
}

template <class T>
MatrixView<T> KeyValues<T>::values(Index layer, Index sequence) {
  return this->layer(layer, sequence).values.view().middle_rows(0, length(sequence));
}

StreamRows last_rows(const StreamRows& whole, const StreamRows& added) {
  std::vector<Index> rows;
  for (Index s = 0; s < added.sequences(); ++s) {
    const Index first = whole.begin(s + 1) - added.count(s);
    for (Index i = 0; i < added.count(s); ++i) rows.push_back(first + i);
  }
  return selected_rows(whole, StreamKind::kSelectedRows, rows, added.begins);
}

template class KeyValues<float>;
template class KeyValues<double>;

}  // namespace masque::model
