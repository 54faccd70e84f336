// Replace: "content" for what "pattern" finds, as make_pattern reads it, in every token.
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
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
    std::size_t before = 0;
    std::size_t after = 0;
    for (std::string& token : tokens) {
      found.clear();
      pattern_->find(token, found);
      if (found.empty()) continue;
      before += token.size();
      std::string out;
      std::size_t at = 0;
      for (const Stretch& match : found) {
        out.append(token, at, match.begin - at);
        out += content_;
        at = match.end;
        check_growth(before, after + out.size());
      }
      token = out.append(token, at);
      after += token.size();
    }
  }

 private:
  /// A file may have steps that double a text again and again.
  static void check_growth(std::size_t before, std::size_t after) {
    constexpr std::size_t kMost = 16 << 20;
    if (after <= before || after <= kMost) return;
    throw InputError(
        fmt::format("the tokenizer's decoder makes {} bytes from {}, expected at most {}", after,
                    before, kMost));
  }

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
