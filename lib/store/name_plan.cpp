#include "store/name_plan.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace masque::store {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLayerNorm{{
    {"LayerNorm.gamma", "LayerNorm.weight"},
    {"LayerNorm.beta", "LayerNorm.bias"},
}};

}  // namespace

std::string with_current_layer_norm(std::string_view name) {
  for (const auto& [from, to] : kLayerNorm) {
    if (!name.ends_with(from)) continue;
    return std::string(name.substr(0, name.size() - from.size())) + std::string(to);
  }
  return std::string(name);
}

}  // namespace masque::store
