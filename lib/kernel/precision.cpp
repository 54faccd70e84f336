#include "kernel/precision.hpp"

#include <array>
#include <utility>

namespace masque::kernel {
namespace {

constexpr std::array<std::pair<Precision, std::string_view>, 3> kNames{
    {{Precision::kF32, "f32"}, {Precision::kBf16, "bf16"}, {Precision::kF64, "f64"}}};

}  // namespace

std::string_view precision_name(Precision precision) {
  for (const auto& [value, name] : kNames) {
    if (value == precision) return name;
  }
  return {};
}

}  // namespace masque::kernel
