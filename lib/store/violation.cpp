#include "store/violation.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::store {

std::string describe(const Violation& violation) {
  if (violation.tensor.empty()) {
    return fmt::format("{} (byte {}): {}", violation.rule, violation.offset, violation.message);
  }
  return fmt::format("{} (tensor '{}', byte {}): {}", violation.rule, escape(violation.tensor),
                     violation.offset, violation.message);
}

void throw_violation(const Violation& violation) {
  throw InputError(violation.file, describe(violation));
}

}  // namespace masque::store
