#include "exchange/convention.hpp"

#include <algorithm>
#include <vector>

#include "base/registry/registry.hpp"

namespace masque::exchange {

namespace {

using Conventions = Registry<Convention>;

}  // namespace

ConventionRegistration::ConventionRegistration(const Convention& convention) {
  Conventions::of_process().add(convention);
}

std::span<const Convention* const> conventions() { return Conventions::of_process().all(); }

const Convention* find_convention(std::string_view name) {
  return Conventions::of_process().find(name);
}

}  // namespace masque::exchange
