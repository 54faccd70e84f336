#include "text/pre_tokenizer.hpp"

#include "base/registry.hpp"
#include "text/part_fields.hpp"

namespace masque::text {

PreTokenizerRegistration::PreTokenizerRegistration(const PreTokenizerKind& kind) {
  Registry<PreTokenizerKind>::of_process().add(std::make_unique<const PreTokenizerKind>(kind));
}

std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& json,
                                                       const std::string& path) {
  if (json.is(JsonKind::kNull)) return nullptr;
  const PartFields fields(json, "pre-tokenizer", path);
  const auto* kind = Registry<PreTokenizerKind>::of_process().find(fields.type());
  if (kind != nullptr) return kind->make(fields);
  fields.refuse_type();
}

}  // namespace masque::text
