#include "text/pre_tokenizer.hpp"

#include <algorithm>
#include <vector>

#include "text/part_fields.hpp"

namespace masque::text {

namespace {

std::vector<PreTokenizerKind>& registry() {
  static std::vector<PreTokenizerKind> kinds;
  return kinds;
}

}  // namespace

PreTokenizerRegistration::PreTokenizerRegistration(const PreTokenizerKind& kind) {
  auto& kinds = registry();
  const auto by_type = [](const PreTokenizerKind& a, const PreTokenizerKind& b) {
    return a.type < b.type;
  };
  kinds.insert(std::upper_bound(kinds.begin(), kinds.end(), kind, by_type), kind);
}

std::span<const PreTokenizerKind> pre_tokenizer_kinds() { return registry(); }

std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& json,
                                                       const std::string& path) {
  if (json.is(JsonKind::kNull)) return nullptr;
  const PartFields fields(json, "pre-tokenizer", path);
  for (const PreTokenizerKind& kind : pre_tokenizer_kinds()) {
    if (kind.type == fields.type()) return kind.make(fields);
  }
  fields.refuse_type();
}

}  // namespace masque::text
