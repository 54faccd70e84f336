#include "store/torch/pickle.hpp"

namespace masque::store {

std::string_view Pickle::text(PickleId id) const {
  return std::string_view(data).substr(static_cast<std::size_t>(values[id].number),
                                       values[id].index);
}

std::span<const PickleId> Pickle::items(PickleId id) const { return containers[values[id].index]; }

}  // namespace masque::store
