#include "model/key_value_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "model/chunk.hpp"

namespace masque::model {

namespace {

/// Makes room for at least so many rows, of which the first `kept` stay. Memory doubles, but up to
/// `longest` rows it does not exceed these.
template <class T>
void make_room(Index rows, Index longest, Index columns, Index kept, Matrix<T>& matrix) {
  if (matrix.rows() >= rows) return;
  Index room = std::max(rows, 2 * matrix.rows());
  if (rows <= longest) room = std::min(room, longest);
  Matrix<T> larger(room, columns);
  for (Index i = 0; i < kept; ++i)
    std::ranges::copy(matrix.view().row_span(i), larger.view().row(i));
  matrix = std::move(larger);
}

/// Makes rows [same, from.rows) of `to` those of `from`; the rows before are equal.
template <class T>
void copy_rows(MatrixView<const T> from, Index longest, Index same, Matrix<T>& to) {
  make_room(from.rows, longest, from.columns, same, to);
  for (Index i = same; i < from.rows; ++i) std::ranges::copy(from.row_span(i), to.view().row(i));
}

}  // namespace

template <class T>
KeyValues<T>::KeyValues(Index layers, Index sequences) : all_(static_cast<std::size_t>(sequences)) {
  for (Sequence& sequence : all_) sequence.layers.resize(static_cast<std::size_t>(layers));
}

template <class T>
typename KeyValues<T>::Sequence KeyValues<T>::copy_of(const Sequence& source,
                                                      std::vector<Sequence>& spare) const {
  const auto shared = [&](const Sequence& other) {
    return std::ranges::mismatch(source.numbers, other.numbers).in1 - source.numbers.begin();
  };
  Sequence copy;
  Index same = 0;
  const auto best = std::ranges::max_element(spare, {}, shared);
  // What shares nothing belongs to another text, whose memory may be larger.
  if (best != spare.end() && shared(*best) > 0) {
    same = shared(*best);
    copy = std::move(*best);
    spare.erase(best);
  }
  copy.positions = source.positions;
  copy.next_position = source.next_position;
  copy.longest = source.longest;
  copy.segments = source.segments;
  copy.source = source.source;
  copy.numbers = source.numbers;
  copy.layers.resize(source.layers.size());
  const Index length = std::ssize(source.numbers);
  for (std::size_t l = 0; l < copy.layers.size(); ++l) {
    const auto copy_part = [&](const Matrix<T>& from, Matrix<T>& to) {
      copy_rows(from.view().middle_rows(0, length), source.longest, same, to);
    };
    copy_part(source.layers[l].keys, copy.layers[l].keys);
    copy_part(source.layers[l].values, copy.layers[l].values);
  }
  return copy;
}

template <class T>
void KeyValues<T>::select(std::span<const Index> from) {
  std::vector<Index> uses(all_.size());
  for (const Index s : from) ++uses[static_cast<std::size_t>(s)];
  std::vector<Sequence> spare;
  for (std::size_t s = 0; s < all_.size(); ++s) {
    if (uses[s] == 0) spare.push_back(std::move(all_[s]));
  }
  std::vector<Sequence> chosen;
  chosen.reserve(from.size());
  for (const Index s : from) {
    Sequence& source = one(s);
    chosen.push_back(--uses[static_cast<std::size_t>(s)] == 0 ? std::move(source)
                                                              : copy_of(source, spare));
  }
  all_ = std::move(chosen);
}

template <class T>
void KeyValues<T>::cut(Index sequence, Index length) {
  MASQUE_CHECK(length >= 0 && length <= this->length(sequence));
  // Rows of layers after the last token are room for more.
  one(sequence).positions.resize(static_cast<std::size_t>(length));
  one(sequence).next_position = 0;
  for (const Index position : one(sequence).positions)
    one(sequence).next_position = std::max(one(sequence).next_position, position + 1);
  one(sequence).segments.resize(static_cast<std::size_t>(length));
  one(sequence).numbers.resize(static_cast<std::size_t>(length));
}

template <class T>
Index KeyValues<T>::next_position(Index sequence) const {
  return one(sequence).next_position;
}

template <class T>
Index KeyValues<T>::room(Index sequence) const {
  Index most = 0;
  for (const Layer& layer : one(sequence).layers)
    most = std::max({most, layer.keys.rows(), layer.values.rows()});
  return most;
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
    for (Index i = 0; i < batch.length(s); ++i) one(s).numbers.push_back(next_number_++);
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
  const Index longest = one(sequence).longest;
  make_room(length, longest, keys.columns, before, own.keys);
  make_room(length, longest, values.columns, before, own.values);
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

template <class T>
void KeyValues<T>::begin_source(Index sequence) {
  one(sequence).source = std::make_shared<std::vector<Layer>>(one(sequence).layers.size());
}

template <class T>
void KeyValues<T>::put_source(Index layer, Index sequence, MatrixView<const T> keys,
                              MatrixView<const T> values) {
  Layer& own = (*one(sequence).source)[static_cast<std::size_t>(layer)];
  own.keys = Matrix<T>::copy(keys);
  own.values = Matrix<T>::copy(values);
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
