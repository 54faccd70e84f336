// Strip: up to "start" and "stop" of the character "content" off the ends of every token.
#include "base/utf8.hpp"
#include "text/decoder.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

namespace {

class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, std::int32_t start, std::int32_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (std::int32_t i = 0; i < start_ && token.starts_with(content_); ++i)
        token.erase(0, content_.size());
      for (std::int32_t i = 0; i < stop_ && token.ends_with(content_); ++i)
        token.resize(token.size() - content_.size());
    }
  }

 private:
  std::string content_;
  std::int32_t start_;
  std::int32_t stop_;
};

std::unique_ptr<Decoder> make_strip_decoder(const JsonValue& json, const std::string& path) {
  const JsonValue& content = get_field(json, "content", JsonKind::kString, path);
  if (count_code_points(content.text) != 1)
    refuse_json(content, path, "'content' is not one character, expected one");
  return std::make_unique<StripDecoder>(content.text, id_field(json, "start", path),
                                        id_field(json, "stop", path));
}

const DecoderRegistration kRegistration{{"Strip", make_strip_decoder}};

}  // namespace

}  // namespace masque::text
