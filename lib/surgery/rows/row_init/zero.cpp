// Zeros.
#include <algorithm>

#include "surgery/rows/row_init.hpp"

namespace masque::surgery {
namespace {

RowValues values(const RowInitContext& /*context*/, const std::string& /*argument*/,
                 const store::TensorInfo& /*table*/, bool /*vector*/) {
  return [](std::uint64_t /*id*/, std::span<double> out) { std::ranges::fill(out, 0.0); };
}

const RowInit kInit{
    .name = "zero", .argument = "", .help = "zeros", .means = nullptr, .values = values};
const RowInitRegistration kRegistration{kInit};

}  // namespace
}  // namespace masque::surgery
