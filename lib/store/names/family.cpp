#include "store/names/family.hpp"

#include <algorithm>

#include "store/names/name_rules.hpp"

namespace masque {

namespace {

std::vector<const Family*>& registry() {
  static std::vector<const Family*> families;
  return families;
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

std::string canonical_name(std::string_view name) {
  for (const Family* family : families()) {
    if (!family->prefix.empty() && name.starts_with(family->prefix)) {
      name.remove_prefix(family->prefix.size());
      break;
    }
  }
  return with_current_layer_norm(name);
}

}  // namespace masque
