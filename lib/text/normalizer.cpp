#include "text/normalizer.hpp"

#include "base/registry.hpp"
#include "text/part_fields.hpp"

namespace masque::text {

NormalizerRegistration::NormalizerRegistration(const NormalizerKind& kind) {
  Registry<NormalizerKind>::of_process().add(std::make_unique<const NormalizerKind>(kind));
}

std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& json, const std::string& path) {
  if (json.is(JsonKind::kNull)) return nullptr;
  const PartFields fields(json, "normalizer", path);
  const auto* kind = Registry<NormalizerKind>::of_process().find(fields.type());
  if (kind != nullptr) return kind->make(fields);
  fields.refuse_type();
}

}  // namespace masque::text
