// Replace: "content" for what "pattern" finds, as make_pattern reads it, in every token.
#include <utility>

#include "text/decoder.hpp"
#include "text/part_fields.hpp"
#include "text/pattern.hpp"

namespace masque::text {

namespace {

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void decode(std::vector<std::string>& tokens) const override {
    std::vector<Stretch> found;
    for (std::string& token : tokens) {
      found.clear();
      pattern_->find(token, found);
      if (found.empty()) continue;
      std::string out;
      std::size_t at = 0;
      for (const Stretch& match : found) {
        out.append(token, at, match.begin - at);
        out += content_;
        at = match.end;
      }
      token = out.append(token, at);
    }
  }

 private:
  std::shared_ptr<const Pattern> pattern_;
  std::string content_;
};

std::unique_ptr<Decoder> make_replace_decoder(const JsonValue& json, const std::string& path) {
  const PartFields fields(json, "decoder", path);
  return std::make_unique<ReplaceDecoder>(make_pattern(fields), fields.text("content"));
}

const DecoderRegistration kRegistration{{"Replace", make_replace_decoder}};

}  // namespace

}  // namespace masque::text
