// SentencePiece's compiled replacements.
#include <optional>

#include "text/charsmap.hpp"
#include "text/normalizer.hpp"
#include "text/part_fields.hpp"

namespace masque::text {

namespace {

/// Strict: groups of four, padded; nothing if the text is anything else.
std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = i < text.size() - padding ? kDigits.find(text[i]) : 0;
    if (digit == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(group >> shift & 0xFF);
    group = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

class Precompiled : public Normalizer {
 public:
  Precompiled(std::string_view bytes, const std::string& path) : charsmap_(bytes, path) {}

  void apply(AlignedText& text) const override { replace_graphemes(text, charsmap_); }

 private:
  Charsmap charsmap_;
};

const NormalizerRegistration kRegistration{
    {"Precompiled", [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       const auto bytes = decode_base64(fields.text("precompiled_charsmap"));
       if (!bytes) fields.refuse("'precompiled_charsmap' is not base64");
       return std::make_shared<Precompiled>(*bytes, fields.path());
     }}};

}  // namespace

}  // namespace masque::text
