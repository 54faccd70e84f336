// Metaspace: "replacement" ("▁"), not empty, back to spaces. "prepend_scheme", else
// "add_prefix_space" (true), says whether the first token loses it.
#include "text/decoder.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

namespace {

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool drop_first)
      : replacement_(std::move(replacement)), drop_first_(drop_first) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], replacement_, i == 0 && drop_first_ ? "" : " ");
  }

 private:
  std::string replacement_;
  bool drop_first_;
};

std::unique_ptr<Decoder> make_metaspace_decoder(const JsonValue& json, const std::string& path) {
  std::string replacement = text_field(json, "replacement", "\xE2\x96\x81", path);
  if (replacement.empty()) refuse_json(json, path, "'replacement' is empty, expected a character");
  const bool prefix = bool_field(json, "add_prefix_space", true, path);
  const std::string scheme = text_field(json, "prepend_scheme", prefix ? "always" : "never", path);
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), scheme != "never");
}

const DecoderRegistration kRegistration{{"Metaspace", make_metaspace_decoder}};

}  // namespace

}  // namespace masque::text
