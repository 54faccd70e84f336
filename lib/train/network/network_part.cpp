#include "train/network/network_part.hpp"

namespace masque::train {

NetworkPart network_part(model::Role role) {
  using model::Role;
  switch (role) {
    case Role::kWordTable:
    case Role::kPositionTable:
    case Role::kSegmentTable:
    case Role::kQueryStart:
    case Role::kEmbeddingNorm:
    case Role::kEmbeddingProjection: return NetworkPart::kEmbeddings;
    case Role::kLatePositions:
    case Role::kSharedPositionPart:
    case Role::kRelativeTable:
    case Role::kRelativeNorm: return NetworkPart::kAllLayers;
    case Role::kFinalNorm: return NetworkPart::kEnd;
    case Role::kHeadTransform:
    case Role::kHeadNorm:
    case Role::kDecoder: return NetworkPart::kHead;
    default: return NetworkPart::kLayers;
  }
}

}  // namespace masque::train
