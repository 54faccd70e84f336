// CTC: repeated tokens are one, "pad_token" goes, "word_delimiter_token" is a space with "cleanup".
#include <algorithm>

#include "text/decoder.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

namespace {

class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool clean)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), clean_(clean) {}

  void decode(std::vector<std::string>& tokens) const override {
    const auto repeated = std::ranges::unique(tokens);
    tokens.erase(repeated.begin(), repeated.end());
    for (std::string& token : tokens) {
      replace_all(token, pad_, "");
      if (!clean_) continue;
      clean_up_spaces(token);
      replace_all(token, delimiter_, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool clean_;
};

std::unique_ptr<Decoder> make_ctc_decoder(const JsonValue& json, const std::string& path) {
  const auto text = [&](const char* name, std::string_view missing) {
    std::string out = text_field(json, name, missing, path);
    if (out.empty())
      refuse_json(json, path, fmt::format("'{}' is empty, expected some text", name));
    return out;
  };
  return std::make_unique<CtcDecoder>(text("pad_token", "<pad>"), text("word_delimiter_token", "|"),
                                      bool_field(json, "cleanup", true, path));
}

const DecoderRegistration kRegistration{{"CTC", make_ctc_decoder}};

}  // namespace

}  // namespace masque::text
