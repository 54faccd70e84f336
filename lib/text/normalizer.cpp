#include "text/normalizer.hpp"

#include <algorithm>
#include <vector>

#include "text/part_fields.hpp"

namespace masque::text {

namespace {

std::vector<NormalizerKind>& registry() {
  static std::vector<NormalizerKind> kinds;
  return kinds;
}

}  // namespace

NormalizerRegistration::NormalizerRegistration(const NormalizerKind& kind) {
  auto& kinds = registry();
  const auto by_type = [](const NormalizerKind& a, const NormalizerKind& b) {
    return a.type < b.type;
  };
  kinds.insert(std::upper_bound(kinds.begin(), kinds.end(), kind, by_type), kind);
}

std::span<const NormalizerKind> normalizer_kinds() { return registry(); }

std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& json, const std::string& path) {
  if (json.is(JsonKind::kNull)) return nullptr;
  const PartFields fields(json, "normalizer", path);
  for (const NormalizerKind& kind : normalizer_kinds()) {
    if (kind.type == fields.type()) return kind.make(fields);
  }
  fields.refuse_type();
}

}  // namespace masque::text
