#include "nn/variant.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace masque::nn {
namespace {

std::vector<std::vector<VariantInfo> (*)()>& sources() {
  static std::vector<std::vector<VariantInfo> (*)()> all;
  return all;
}

}  // namespace

std::string_view masks_text(MaskSupport masks) {
  switch (masks) {
    case MaskSupport::kAny: return "any";
    case MaskSupport::kCausal: return "full, causal";
    case MaskSupport::kFull: return "full";
  }
  return "";
}

VariantSource::VariantSource(std::vector<VariantInfo> (*list)()) { sources().push_back(list); }

std::vector<VariantInfo> variants() {
  std::vector<VariantInfo> all;
  for (const auto list : sources()) {
    for (VariantInfo& info : list()) all.push_back(std::move(info));
  }
  std::sort(all.begin(), all.end(), [](const VariantInfo& a, const VariantInfo& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
  return all;
}

}  // namespace masque::nn
