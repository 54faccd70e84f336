#include "store/names/family.hpp"

#include <algorithm>

#include "store/name_plan.hpp"

namespace masque::store {

namespace {

struct Source {
  FamilyNamesSource::All all = nullptr;
  FamilyNamesSource::One one = nullptr;
};

Source& source() {
  static Source source;
  return source;
}

std::vector<FamilyNames> made_names() {
  std::vector<FamilyNames> names;
  if (source().all != nullptr) names = source().all();
  std::ranges::sort(names, {}, &FamilyNames::name);
  return names;
}

}  // namespace

FamilyNamesSource::FamilyNamesSource(All all, One one) { source() = {all, one}; }

std::shared_ptr<const FamilyNames> family_names_of(const ModelConfig& config) {
  return source().one == nullptr ? nullptr : source().one(config);
}

std::span<const FamilyNames> family_names() {
  static const std::vector<FamilyNames> kNames = made_names();
  return kNames;
}

const FamilyNames* find_family_names(std::string_view name) {
  for (const FamilyNames& family : family_names()) {
    if (family.name == name ||
        std::ranges::find(family.model_types, name) != family.model_types.end()) {
      return &family;
    }
  }
  return nullptr;
}

std::string with_prefix(std::string_view name, std::string_view prefix) {
  if (!name.starts_with('~')) return std::string(name);
  return std::string(prefix) + std::string(name.substr(1));
}

std::string canonical_name(std::string_view name) {
  for (const FamilyNames& family : family_names()) {
    if (!family.prefix.empty() && name.starts_with(family.prefix)) {
      name.remove_prefix(family.prefix.size());
      break;
    }
  }
  return with_current_layer_norm(name);
}

}  // namespace masque::store
