#include "nn/position/pair_tables.hpp"

#include <algorithm>
#include <complex>
#include <optional>
#include <utility>
#include <vector>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/norm.hpp"
#include "kernel/product/linear.hpp"
#include "nn/attention/tile.hpp"
#include "nn/position/offset_bias.hpp"

namespace masque::nn {

namespace {

// Which row of a table a pair reads.

class DistanceRows final : public PairRows {
 public:
  DistanceRows(const PositionIds& positions, std::function<Index(Index)> row)
      : positions_(positions), row_(std::move(row)) {
    if (positions.queries.empty() || positions.keys.empty()) return;
    const OffsetBounds bounds = offset_bounds(positions);
    if (!worth_a_table(bounds, positions)) return;
    least_ = bounds.least;
    table_.reserve(static_cast<std::size_t>(bounds.count()));
    for (Index offset = bounds.least; offset <= bounds.most; ++offset)
      table_.push_back(static_cast<std::int32_t>(row_(-offset)));
  }

  void fill(mask::Range queries, mask::Range keys, std::int32_t* out) const override {
    for (Index i = queries.begin; i < queries.end; ++i) {
      const Index query = positions_.queries[static_cast<std::size_t>(i)];
      const Index* const key = positions_.keys.data() + keys.begin;
      if (table_.empty()) {
        for (Index j = 0; j < keys.size(); ++j)
          out[j] = static_cast<std::int32_t>(row_(query - key[j]));
      } else {
        const Index shift = query + least_;
        for (Index j = 0; j < keys.size(); ++j)
          out[j] = table_[static_cast<std::size_t>(key[j] - shift)];
      }
      out += keys.size();
    }
  }

 private:
  PositionIds positions_;
  std::function<Index(Index)> row_;
  Index least_ = 0;
  std::vector<std::int32_t> table_;  ///< of key − query, from least_ on
};

class SegmentRows final : public PairRows {
 public:
  SegmentRows(std::span<const Index> queries, std::span<const Index> keys)
      : queries_(queries), keys_(keys) {}

  void fill(mask::Range queries, mask::Range keys, std::int32_t* out) const override {
    if (queries_.empty()) {
      std::fill_n(out, queries.size() * keys.size(), 0);
      return;
    }
    for (Index i = queries.begin; i < queries.end; ++i) {
      const Index segment = queries_[static_cast<std::size_t>(i)];
      for (Index j = keys.begin; j < keys.end; ++j)
        *out++ = keys_[static_cast<std::size_t>(j)] == segment ? 0 : 1;
    }
  }

 private:
  std::span<const Index> queries_;
  std::span<const Index> keys_;
};

// Products of queries or keys with the rows of a position table.

/// Rows w (R, size) of a table, kept for products x · wᵀ with a few x at a time. Thread-safe once
/// made.
template <class T>
class RowProducts {
 public:
  /// Packs `table`; std::complex tables are borrowed instead.
  explicit RowProducts(MatrixView<const T> table) : table_(table) {
    if constexpr (kPacks) {
      packed_.resize(kernel::strips_of<T>(table.rows), table.columns * tile::kLanes<T>);
      tile::pack_transposed(table, tile::Strips<T>{packed_.data(), packed_.columns()});
    }
  }

  /// Products of the rows of `x` (any, size) with the rows [`first`, `last`) of the table,
  /// (x.rows, last − first). Returns them as a part of `out`, which is resized. An element depends
  /// on its two vectors alone.
  MatrixView<const T> of(MatrixView<const T> x, Index first, Index last, Matrix<T>& out) const {
    if constexpr (kPacks) {
      const Index begin = first / tile::kLanes<T> * tile::kLanes<T>;
      out.resize(x.rows, round_up(last - begin, tile::kLanes<T>));
      const tile::Strips<const T> all{packed_.data(), packed_.columns()};
      tile::multiply<T>(x, all.from_column(begin), out.view(), false);
      return MatrixView<const T>(out.view()).middle_columns(first - begin, last - first);
    } else {
      out.resize(x.rows, last - first);
      for (Index i = 0; i < x.rows; ++i) {
        for (Index r = first; r < last; ++r) {
          T sum{};
          for (Index d = 0; d < x.columns; ++d) sum += x.at(i, d) * table_.at(r, d);
          out.view().at(i, r - first) = sum;
        }
      }
      return out.view();
    }
  }

 private:
  static constexpr bool kPacks = !std::is_same_v<T, std::complex<double>>;
  MatrixView<const T> table_;
  Matrix<T> packed_;
};

// Products of all keys with the rows in use are kept up to here, else made again for each tile.
constexpr Index kKeptProducts = Index{4} << 20;

/// Columns of a head in a table, which may serve all heads.
template <class T>
MatrixView<T> columns_of(MatrixView<T> table, Index head, Index size) {
  if (table.data == nullptr || table.columns == size) return table;
  return table.middle_columns(head * size, size);
}

/// The rows of a tile's pairs.
struct TileRows {
  std::vector<std::int32_t> rows;
  Index least = 0;
  Index end = 0;

  void fill(const PairRows& of, mask::Range queries, mask::Range keys) {
    rows.resize(static_cast<std::size_t>(queries.size() * keys.size()));
    of.fill(queries, keys, rows.data());
    const auto [low, high] = std::ranges::minmax(rows);
    least = low;
    end = high + 1;
  }
};

template <class T>
Matrix<T> plus_row(MatrixView<const T> x, MatrixView<const T> added) {
  Matrix<T> out = Matrix<T>::copy(x);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index c = 0; c < x.columns; ++c) out.view().at(i, c) += added.at(0, c);
  }
  return out;
}

/// One table at work on a head.
template <class T>
class TableHead {
 public:
  TableHead(const PairTables<T>& tables, Index head, MatrixView<const T> query,
            MatrixView<const T> key)
      : row_(tables.row.get()), scale_(static_cast<T>(tables.scale)), query_(query), key_(key) {
    const Index size = query.columns;
    if (const auto a = columns_of(tables.by_query, head, size); a.data != nullptr) {
      by_query_.emplace(a);
      if (tables.query_bias.data != nullptr) {
        biased_ = plus_row(query, columns_of(tables.query_bias, head, size));
        query_ = std::as_const(biased_).view();
      }
    }
    if (const auto b = columns_of(tables.by_key, head, size); b.data != nullptr) {
      by_key_.emplace(b);
      if (key.rows * b.rows <= kKeptProducts) {
        MatrixView<const T> all = by_key_->of(key, 0, b.rows, key_products_);
        kept_ = all;
      }
    }
    if (const auto u = columns_of(tables.content_bias, head, size); u.data != nullptr) {
      content_.assign(static_cast<std::size_t>(key.rows), T{});
      for (Index j = 0; j < key.rows; ++j) {
        T& sum = content_[static_cast<std::size_t>(j)];
        for (Index c = 0; c < size; ++c) sum += u.at(0, c) * key.at(j, c);
        sum *= scale_;
      }
    }
  }

  void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const {
    if (by_query_ || by_key_) {
      thread_local TileRows tile;
      tile.fill(*row_, queries, keys);
      if (by_query_) add_query_products(tile, queries, scores);
      if (by_key_) add_key_products(tile, keys, scores);
    }
    if (content_.empty()) return;
    const T* const term = content_.data() + keys.begin;
    for (Index i = 0; i < scores.rows; ++i) {
      T* const to = scores.row(i);
      for (Index j = 0; j < scores.columns; ++j) to[j] += term[j];
    }
  }

 private:
  void add_query_products(const TileRows& tile, mask::Range queries, MatrixView<T> scores) const {
    thread_local Matrix<T> memory;
    const MatrixView<const T> products = by_query_->of(
        query_.middle_rows(queries.begin, queries.size()), tile.least, tile.end, memory);
    const std::int32_t* row = tile.rows.data();
    for (Index i = 0; i < scores.rows; ++i, row += scores.columns) {
      const T* const from = products.row(i) - tile.least;
      T* const to = scores.row(i);
      for (Index j = 0; j < scores.columns; ++j) to[j] += scale_ * from[row[j]];
    }
  }

  void add_key_products(const TileRows& tile, mask::Range keys, MatrixView<T> scores) const {
    thread_local Matrix<T> memory;
    MatrixView<const T> products = kept_;
    Index first_key = keys.begin, first_row = 0;
    if (products.data == nullptr) {
      products =
          by_key_->of(key_.middle_rows(keys.begin, keys.size()), tile.least, tile.end, memory);
      first_key = 0;
      first_row = tile.least;
    }
    const std::int32_t* row = tile.rows.data();
    for (Index i = 0; i < scores.rows; ++i, row += scores.columns) {
      T* const to = scores.row(i);
      const T* from = products.row(first_key) - first_row;
      for (Index j = 0; j < scores.columns; ++j, from += products.stride)
        to[j] += scale_ * from[row[j]];
    }
  }

  const PairRows* row_;
  T scale_;
  MatrixView<const T> query_;  ///< with v
  MatrixView<const T> key_;
  Matrix<T> biased_;
  std::optional<RowProducts<T>> by_query_, by_key_;
  Matrix<T> key_products_;
  MatrixView<const T> kept_;  ///< of all keys with all rows; without data: made for each tile
  std::vector<T> content_;    ///< scale · u·k_j
};

template <class T>
class PairTableHead final : public HeadBias<T> {
 public:
  PairTableHead(const std::vector<PairTables<T>>& tables, Index head, MatrixView<const T> query,
                MatrixView<const T> key) {
    for (const PairTables<T>& one : tables)
      all_.push_back(std::make_unique<TableHead<T>>(one, head, query, key));
  }

  void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const override {
    if (queries.size() == 0 || keys.size() == 0) return;
    for (const auto& one : all_) one->add(queries, keys, scores);
  }

 private:
  std::vector<std::unique_ptr<TableHead<T>>> all_;
};

/// y += x; nothing where one of them has no data.
template <class T>
void add_where_wanted(MatrixView<const T> x, MatrixView<T> y) {
  if (x.data != nullptr && y.data != nullptr) kernel::add_to<T>(x, y);
}

template <class T>
void add_column_sums(MatrixView<const T> x, MatrixView<T> sums) {
  if (sums.data == nullptr) return;
  for (Index i = 0; i < x.rows; ++i) {
    for (Index c = 0; c < x.columns; ++c) sums.at(0, c) += x.at(i, c);
  }
}

/// The backward pass through one table: s(i, j) = x_i · table_row(i, j), x a query, or a key
/// (`by_key`). Returns the gradients of x; those of the table's columns are added to d_table (rows,
/// head size).
template <class T>
Matrix<T> product_backward(const TileRows& tile, double scale, bool by_key, MatrixView<const T> x,
                           MatrixView<const T> table, MatrixView<const T> d_scores,
                           MatrixView<T> d_table) {
  const Index used = tile.end - tile.least;
  Matrix<T> d_products = Matrix<T>::zero(x.rows, used);
  const std::int32_t* row = tile.rows.data();
  for (Index i = 0; i < d_scores.rows; ++i, row += d_scores.columns) {
    const T* const d = d_scores.row(i);
    for (Index j = 0; j < d_scores.columns; ++j)
      d_products.view().row(by_key ? j : i)[row[j] - tile.least] += static_cast<T>(scale) * d[j];
  }
  Matrix<T> d_x = Matrix<T>::zero(x.rows, x.columns);
  kernel::matmul_backward<T>(x, table.middle_rows(tile.least, used),
                             std::as_const(d_products).view(), d_x.view(),
                             d_table.middle_rows(tile.least, used));
  return d_x;
}

/// The gradients of scale · u·k_j.
template <class T>
void content_backward(const PairTables<T>& tables, Index head, MatrixView<const T> key,
                      MatrixView<const T> d_scores, MatrixView<T> d_key) {
  const Index size = key.columns;
  const MatrixView<const T> u = columns_of(tables.content_bias, head, size);
  if (u.data == nullptr) return;
  const MatrixView<T> d_u = columns_of(tables.d_content_bias, head, size);
  for (Index j = 0; j < key.rows; ++j) {
    T d{};
    for (Index i = 0; i < d_scores.rows; ++i) d += d_scores.at(i, j);
    d *= static_cast<T>(tables.scale);
    for (Index c = 0; c < size; ++c) {
      if (d_key.data != nullptr) d_key.at(j, c) += d * u.at(0, c);
      if (d_u.data != nullptr) d_u.at(0, c) += d * key.at(j, c);
    }
  }
}

template <class T>
void table_backward(const PairTables<T>& tables, Index head, MatrixView<const T> query,
                    MatrixView<const T> key, MatrixView<const T> d_scores, MatrixView<T> d_query,
                    MatrixView<T> d_key) {
  const Index size = query.columns;
  TileRows tile;
  tile.fill(*tables.row, {0, query.rows}, {0, key.rows});
  Matrix<T> d_a, d_b;
  if (const auto a = columns_of(tables.by_query, head, size); a.data != nullptr) {
    const MatrixView<const T> v = columns_of(tables.query_bias, head, size);
    const Matrix<T> biased = v.data != nullptr ? plus_row(query, v) : Matrix<T>();
    d_a = Matrix<T>::zero(a.rows, size);
    const Matrix<T> d_x =
        product_backward<T>(tile, tables.scale, false, v.data != nullptr ? biased.view() : query, a,
                            d_scores, d_a.view());
    add_where_wanted<T>(d_x.view(), d_query);
    add_column_sums<T>(d_x.view(), columns_of(tables.d_query_bias, head, size));
  }
  if (const auto b = columns_of(tables.by_key, head, size); b.data != nullptr) {
    d_b = Matrix<T>::zero(b.rows, size);
    const Matrix<T> d_x =
        product_backward<T>(tile, tables.scale, true, key, b, d_scores, d_b.view());
    add_where_wanted<T>(d_x.view(), d_key);
  }
  content_backward<T>(tables, head, key, d_scores, d_key);
  add_where_wanted<T>(std::as_const(d_a).view(), columns_of(tables.d_by_query, head, size));
  add_where_wanted<T>(std::as_const(d_b).view(), columns_of(tables.d_by_key, head, size));
  if (tables.owner.push) tables.owner.push(head, d_a.view(), d_b.view());
}

}  // namespace

std::shared_ptr<const PairRows> distance_rows(const PositionIds& positions,
                                              std::function<Index(Index distance)> row) {
  return std::make_shared<const DistanceRows>(positions, std::move(row));
}

std::shared_ptr<const PairRows> segment_rows(std::span<const Index> queries,
                                             std::span<const Index> keys) {
  return std::make_shared<const SegmentRows>(queries, keys);
}

template <class T>
std::unique_ptr<HeadBias<T>> PairTableTerms<T>::head(Index head, MatrixView<const T> query,
                                                     MatrixView<const T> key) const {
  return std::make_unique<PairTableHead<T>>(tables_, head, query, key);
}

template <class T>
void PairTableTerms<T>::backward(Index head, MatrixView<const T> query, MatrixView<const T> key,
                                 MatrixView<const T> d_scores, MatrixView<T> d_query,
                                 MatrixView<T> d_key) {
  if (query.rows == 0 || key.rows == 0) return;
  for (const PairTables<T>& tables : tables_)
    table_backward<T>(tables, head, query, key, d_scores, d_query, d_key);
}

template class PairTableTerms<float>;
template class PairTableTerms<double>;
template class PairTableTerms<std::complex<double>>;

}  // namespace masque::nn
