#include "model/forward/stream_masks.hpp"

#include "model/chunk.hpp"

namespace masque::model {

const std::vector<std::shared_ptr<const mask::BlockMap>>& StreamMasks::blocks(
    const LayerMasks& masks, Index layer, const StreamRows& stream, const StreamRows& content,
    std::span<const std::optional<mask::Mask>> own, std::span<const Index> places, OwnMask how) {
  const std::size_t kind = masks.kind(layer);
  const auto [found, fresh] = known_.try_emplace({kind, stream.kind});
  if (!fresh) return found->second;
  const bool all = stream.kind == StreamKind::kContent;
  found->second.reserve(static_cast<std::size_t>(content.sequences()));
  for (Index s = 0; s < content.sequences(); ++s) {
    std::vector<Index> rows;
    if (!all) {
      const std::span<const Index> chosen = of_sequence(stream.rows, stream.begins, s);
      rows.assign(chosen.begin(), chosen.end());
      for (Index& row : rows) row -= content.begin(s);
    }
    if (!all && rows.empty()) {
      found->second.push_back(nullptr);
      continue;
    }
    found->second.push_back(masks.blocks(
        kind, content.count(s), rows, own.empty() ? std::nullopt : own[static_cast<std::size_t>(s)],
        of_sequence(places, content.begins, s), how));
  }
  return found->second;
}

}  // namespace masque::model
