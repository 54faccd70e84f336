// Where in a network the tensors of a role stand: what decides how deep the backward pass goes, and
// what the words of a choice of tensors mean.
#pragma once

#include "model/role.hpp"

namespace masque::train {

/// Where in a network a tensor stands.
enum class NetworkPart {
  kEmbeddings,  ///< everything in front of the first layer: tables, their norm, a projection
  kLayers,      ///< one layer each
  kAllLayers,   ///< used by every layer
  kEnd,         ///< the norm after the last layer
  kHead,        ///< after that norm
};

/// Returns where the tensors of `role` stand. Shared parameters of positions are kAllLayers, though
/// some schemes change the input with them.
NetworkPart network_part(model::Role role);

}  // namespace masque::train
