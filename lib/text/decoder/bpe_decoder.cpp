// BPEDecoder: "suffix" ("</w>"), not empty, at the end of words becomes a space.
#include "text/decoder.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

namespace {

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

std::unique_ptr<Decoder> make_bpe_decoder(const JsonValue& json, const std::string& path) {
  std::string suffix = text_field(json, "suffix", "</w>", path);
  if (suffix.empty()) refuse_json(json, path, "'suffix' is empty, expected some text");
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

const DecoderRegistration kRegistration{{"BPEDecoder", make_bpe_decoder}};

}  // namespace

}  // namespace masque::text
