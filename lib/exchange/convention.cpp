#include "exchange/convention.hpp"

#include <algorithm>
#include <vector>

namespace masque {

namespace {

std::vector<const Convention*>& registry() {
  static std::vector<const Convention*> all;
  return all;
}

}  // namespace

ConventionRegistration::ConventionRegistration(const Convention& convention) {
  auto& all = registry();
  all.insert(std::upper_bound(all.begin(), all.end(), &convention,
                              [](const auto* a, const auto* b) { return a->name < b->name; }),
             &convention);
}

std::span<const Convention* const> conventions() { return registry(); }

const Convention* find_convention(std::string_view name) {
  for (const Convention* convention : conventions()) {
    if (convention->name == name) return convention;
  }
  return nullptr;
}

}  // namespace masque
