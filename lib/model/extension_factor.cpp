#include "model/extension_factor.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::model {

double read_factor(NamedArguments& spelled) {
  const double factor = spelled.number("factor", 0, 0, 1e6);
  if (factor == 0 || factor >= 1) return factor;
  throw UsageError(
      fmt::format("{}: factor is {}, expected 0 or at least 1", spelled.name(), factor));
}

}  // namespace masque::model
