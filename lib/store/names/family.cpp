#include "store/names/family.hpp"

#include <algorithm>
#include <array>

#include "base/registry.hpp"
#include "store/name_plan.hpp"

namespace masque::store {

namespace {

using Families = Registry<FamilyNames>;

}  // namespace

FamilyNamesRegistration::FamilyNamesRegistration(const FamilyNames& family) {
  Families::of_process().add(family);
}

std::span<const FamilyNames* const> family_names() { return Families::of_process().all(); }

const FamilyNames* find_family_names(std::string_view name) {
  for (const FamilyNames* family : family_names()) {
    const auto& types = family->model_types;
    if (family->name == name || std::find(types.begin(), types.end(), name) != types.end()) {
      return family;
    }
  }
  return nullptr;
}

std::vector<std::string_view> with_bert_layers(std::vector<std::string_view> names) {
  constexpr std::array<std::string_view, 8> kLayer{
      "~encoder.layer.{l}.attention.self.query.*",
      "~encoder.layer.{l}.attention.self.key.*",
      "~encoder.layer.{l}.attention.self.value.*",
      "~encoder.layer.{l}.attention.output.dense.*",
      "~encoder.layer.{l}.attention.output.LayerNorm.*",
      "~encoder.layer.{l}.intermediate.dense.*",
      "~encoder.layer.{l}.output.dense.*",
      "~encoder.layer.{l}.output.LayerNorm.*"};
  names.insert(names.end(), kLayer.begin(), kLayer.end());
  return names;
}

std::string with_prefix(std::string_view name, std::string_view prefix) {
  if (!name.starts_with('~')) return std::string(name);
  return std::string(prefix) + std::string(name.substr(1));
}

std::string canonical_name(std::string_view name) {
  for (const FamilyNames* family : family_names()) {
    if (!family->prefix.empty() && name.starts_with(family->prefix)) {
      name.remove_prefix(family->prefix.size());
      break;
    }
  }
  return with_current_layer_norm(name);
}

}  // namespace masque::store
