#include "store/names/family.hpp"

#include <algorithm>

#include "base/registry.hpp"
#include "store/names/name_plan.hpp"

namespace masque {

namespace {

using Families = Registry<Family>;

}  // namespace

FamilyRegistration::FamilyRegistration(const Family& family) { Families::of_process().add(family); }

std::span<const Family* const> families() { return Families::of_process().all(); }

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
