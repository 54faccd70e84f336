#include "store/family.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace masque {

namespace {

std::vector<const Family*>& registry() {
  static std::vector<const Family*> families;
  return families;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLayerNormNames{{
    {"LayerNorm.weight", "LayerNorm.gamma"},
    {"LayerNorm.bias", "LayerNorm.beta"},
}};

std::optional<std::string> replace_end(std::string_view name, std::string_view end,
                                       std::string_view by) {
  if (!name.ends_with(end)) return std::nullopt;
  return std::string(name.substr(0, name.size() - end.size())) + std::string(by);
}

}  // namespace

FamilyRegistration::FamilyRegistration(const Family& family) {
  auto& all = registry();
  const auto by_name = [](const Family* a, const Family* b) { return a->name < b->name; };
  all.insert(std::upper_bound(all.begin(), all.end(), &family, by_name), &family);
}

std::span<const Family* const> families() { return registry(); }

const Family* find_family(std::string_view name) {
  for (const Family* family : families()) {
    const auto& types = family->model_types;
    if (family->name == name || std::find(types.begin(), types.end(), name) != types.end()) {
      return family;
    }
  }
  return nullptr;
}

std::string with_prefix(std::string_view name, std::string_view prefix) {
  if (!name.starts_with('~')) return std::string(name);
  return std::string(prefix) + std::string(name.substr(1));
}

std::optional<std::string> old_name(std::string_view name) {
  for (const auto& [current, old] : kLayerNormNames) {
    if (auto renamed = replace_end(name, current, old)) return renamed;
  }
  return std::nullopt;
}

std::string current_name(std::string_view name) {
  for (const auto& [current, old] : kLayerNormNames) {
    if (auto renamed = replace_end(name, old, current)) return *renamed;
  }
  return std::string(name);
}

}  // namespace masque
