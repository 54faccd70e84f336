#include "kernel/number/precision.hpp"

#include <array>
#include <utility>

namespace masque::kernel {
namespace {

constexpr std::array<std::pair<std::string_view, Precision>, 3> kNames{
    {{"f32", Precision::kF32}, {"bf16", Precision::kBf16}, {"f64", Precision::kF64}}};

}  // namespace

NameTable<Precision> precision_names() { return kNames; }

std::string_view precision_name(Precision precision) {
  return name_in(precision_names(), precision);
}

}  // namespace masque::kernel
