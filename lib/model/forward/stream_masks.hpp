// What the rows of the streams of a chunk may read, made once a chunk.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/forward/stream.hpp"
#include "model/masks.hpp"

namespace masque::model {

/// Keeps the block maps of a chunk, which layers of one kind share. For one thread.
class StreamMasks {
 public:
  /// What the rows of each sequence in `stream` may read of `content` in layer `layer`, by `masks`;
  /// nullptr: everything, or the sequence has no row. `own`: a mask for each sequence, which
  /// replaces the model's or joins it, as `how` says; empty: none has one. `places` of the rows of
  /// `content`, that windows of layers go by; empty: 0, 1, … The result stays until clear(), also
  /// for later calls of the same kind of layer and stream, which must have the same arguments.
  /// Throws UsageError for masks that do not fit.
  const std::vector<std::shared_ptr<const mask::BlockMap>>& blocks(
      const LayerMasks& masks, Index layer, const StreamRows& stream, const StreamRows& content,
      std::span<const std::optional<mask::Mask>> own, std::span<const Index> places = {},
      OwnMask how = OwnMask::kReplaces);
  /// Forgets all block maps: for the next chunk.
  void clear() { known_.clear(); }

 private:
  std::map<std::pair<std::size_t, StreamKind>, std::vector<std::shared_ptr<const mask::BlockMap>>>
      known_;
};

}  // namespace masque::model
