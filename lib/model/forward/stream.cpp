#include "model/forward/stream.hpp"

#include <algorithm>

namespace masque::model {

std::vector<Index> text_lengths(const Design& design, const StreamRows& rows) {
  std::vector<Index> lengths;
  if (long_from(design) == 0) return lengths;
  for (Index s = 0; s < rows.sequences(); ++s) {
    Index length = 0;
    for (Index i = rows.begin(s); i < rows.begin(s + 1); ++i)
      length = std::max(length, rows.positions[static_cast<std::size_t>(i)] + 1);
    lengths.push_back(length);
  }
  return lengths;
}

StreamRows selected_rows(const StreamRows& content, StreamKind kind, std::span<const Index> rows,
                         std::span<const Index> begins) {
  StreamRows stream;
  stream.kind = kind;
  stream.rows.assign(rows.begin(), rows.end());
  stream.begins.assign(begins.begin(), begins.end());
  const auto take = [&](const std::vector<Index>& from, std::vector<Index>& to) {
    if (from.empty()) return;
    to.reserve(rows.size());
    for (const Index row : rows) to.push_back(from[static_cast<std::size_t>(row)]);
  };
  take(content.positions, stream.positions);
  take(content.segments, stream.segments);
  stream.text_lengths = content.text_lengths;
  return stream;
}

}  // namespace masque::model
