#include "model/forward/stream.hpp"

namespace masque::model {

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
  return stream;
}

}  // namespace masque::model
