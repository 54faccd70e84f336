#include "model/forward/embedding_sum.hpp"

#include <algorithm>
#include <complex>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/embedding.hpp"
#include "kernel/norm.hpp"
#include "kernel/parallel.hpp"
#include "nn/position/position.hpp"

namespace masque::model {

namespace {

template <class I>
void check_rows(std::string_view what, std::span<const I> rows, Index limit) {
  for (const I row : rows) {
    if (row < 0 || row >= limit)
      throw InputError(fmt::format("{} {}, expected 0 to {}", what, row, limit - 1));
  }
}

}  // namespace

std::vector<Index> segment_rows(const StreamRows& stream) {
  return stream.segments.empty() ? std::vector<Index>(static_cast<std::size_t>(stream.count()), 0)
                                 : stream.segments;
}

std::vector<Index> table_positions(const Design& design, const StreamRows& stream) {
  std::vector<Index> rows(stream.positions);
  for (Index& row : rows) row += design.position_offset;
  return rows;
}

template <class T>
void embed_words(const Design& design, const EmbeddingTables<T>& tables, const StreamRows& stream,
                 std::span<const TokenId> ids, MatrixView<T> x) {
  check_rows<TokenId>("token id", ids, tables.word.rows);
  if (tables.words == nullptr) {
    kernel::embedding_forward<T, TokenId>(tables.word, ids, x);
  } else if constexpr (std::is_same_v<T, float>) {
    kernel::parallel_items(x.rows, [&](Index i) {
      tables.words->read(ids[static_cast<std::size_t>(i)], x.middle_rows(i, 1));
    });
  }
  scale_words(design, stream, ids, x);
}

template <class T>
void scale_words(const Design& design, const StreamRows& stream, std::span<const TokenId> ids,
                 MatrixView<T> x) {
  if (design.embedding_scale != 1) {
    for (Index i = 0; i < x.rows; ++i) {
      for (T& value : x.row_span(i)) value *= static_cast<T>(design.embedding_scale);
    }
  }
  if (design.token_dropout == 0) return;
  const TokenId mask = design.mask_token_id.value();
  for (Index s = 0; s < stream.sequences(); ++s) {
    const auto tokens = ids.subspan(static_cast<std::size_t>(stream.begin(s)),
                                    static_cast<std::size_t>(stream.count(s)));
    const auto masks = static_cast<double>(std::ranges::count(tokens, mask));
    const double share = masks / static_cast<double>(std::max<Index>(stream.count(s), 1));
    // Of a text of masks alone all rows are 0, whatever the factor.
    const double factor = share < 1 ? (1 - design.token_dropout) / (1 - share) : 0;
    for (Index i = 0; i < stream.count(s); ++i) {
      const bool is_mask = tokens[static_cast<std::size_t>(i)] == mask;
      for (T& value : x.row_span(stream.begin(s) + i))
        value *= static_cast<T>(is_mask ? 0 : factor);
    }
  }
}

namespace {

template <class T>
void add_positions(const Design& design, const EmbeddingTables<T>& tables, const StreamRows& stream,
                   MatrixView<T> x) {
  const std::vector<Index> rows = table_positions(design, stream);
  check_rows<Index>("position", rows, tables.position.rows);
  kernel::embedding_add<T, Index>(tables.position, rows, x);
}

}  // namespace

template <class T>
void add_segments_and_positions(const Design& design, const EmbeddingTables<T>& tables,
                                const StreamRows& stream, MatrixView<T> x) {
  if (tables.segment.data != nullptr) {
    const std::vector<Index> rows = segment_rows(stream);
    check_rows<Index>("segment", rows, tables.segment.rows);
    kernel::embedding_add<T, Index>(tables.segment, rows, x);
  }
  if (tables.position.data != nullptr) {
    if (!design.positions_after_projection) add_positions(design, tables, stream, x);
  } else if (design.position == PositionType::kSinusoidal) {
    const std::vector<double> positions(stream.positions.begin(), stream.positions.end());
    Matrix<T> waves(x.rows, x.columns);
    nn::sinusoidal_table<T>(positions, design.sinusoidal_interleaved, waves.view());
    kernel::add_to<T>(waves.view(), x);
  }
}

template <class T>
void add_projected_positions(const Design& design, const EmbeddingTables<T>& tables,
                             const StreamRows& stream, MatrixView<T> x) {
  if (design.positions_after_projection) add_positions(design, tables, stream, x);
}

template <class T>
void add_late_positions(MatrixView<const T> table, const StreamRows& stream, MatrixView<T> x) {
  check_rows<Index>("position", stream.positions, table.rows);
  kernel::embedding_add<T, Index>(table, stream.positions, x);
}

#define MASQUE_INSTANTIATE(T)                                                            \
  template void embed_words(const Design&, const EmbeddingTables<T>&, const StreamRows&, \
                            std::span<const TokenId>, MatrixView<T>);                    \
  template void scale_words(const Design&, const StreamRows&, std::span<const TokenId>,  \
                            MatrixView<T>);                                              \
  template void add_segments_and_positions(const Design&, const EmbeddingTables<T>&,     \
                                           const StreamRows&, MatrixView<T>);            \
  template void add_projected_positions(const Design&, const EmbeddingTables<T>&,        \
                                        const StreamRows&, MatrixView<T>);               \
  template void add_late_positions(MatrixView<const T>, const StreamRows&, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::model
