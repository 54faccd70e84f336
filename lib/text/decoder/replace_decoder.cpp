// Replace: one text for another, in every token.
#include "text/decoder/variants.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

namespace {

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) replace_all(token, from_, to_);
  }

 private:
  std::string from_;
  std::string to_;
};

}  // namespace

std::unique_ptr<Decoder> make_replace_decoder(const JsonValue& json, const std::string& path) {
  const JsonValue& pattern = get_field(json, "pattern", JsonKind::kObject, path);
  if (pattern.find("Regex") != nullptr)
    refuse_json(pattern, path, "decoder 'Replace' with a 'Regex', expected a 'String'");
  const JsonValue& from = get_field(pattern, "String", JsonKind::kString, path);
  if (from.text.empty()) refuse_json(from, path, "an empty pattern, expected some text");
  return std::make_unique<ReplaceDecoder>(from.text,
                                          get_field(json, "content", JsonKind::kString, path).text);
}

}  // namespace masque::text
