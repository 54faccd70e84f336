// ByteLevel: characters that stand for bytes.
#include "base/escape.hpp"
#include "base/utf8.hpp"
#include "text/decoder.hpp"

namespace masque::text {

namespace {

/// The byte that a character of GPT-2's alphabet stands for; −1 for other characters.
int byte_of(char32_t c) {
  if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF))
    return static_cast<int>(c);
  if (c < 0x100 || c > 0x143) return -1;
  const int n = static_cast<int>(c) - 0x100;
  if (n <= 0x20) return n;
  if (n <= 0x42) return n - 0x21 + 0x7F;
  return 0xAD;
}

class ByteLevelDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      const std::size_t before = bytes.size();
      std::string_view rest = token;
      while (!rest.empty()) {
        char32_t c = 0;
        const int size = decode_utf8(rest, c);
        const int byte = size == 0 ? -1 : byte_of(c);
        if (byte < 0) break;
        bytes += static_cast<char>(byte);
        rest.remove_prefix(static_cast<std::size_t>(size));
      }
      if (rest.empty()) continue;
      bytes.resize(before);  // a token of another alphabet stays as it is
      bytes += token;
    }
    std::string text;
    append_replacing_invalid(bytes, text);
    tokens.clear();
    tokens.push_back(std::move(text));
  }
};

std::unique_ptr<Decoder> make_byte_level_decoder(const JsonValue& /*json*/,
                                                 const std::string& /*path*/) {
  return std::make_unique<ByteLevelDecoder>();
}

const DecoderRegistration kRegistration{{"ByteLevel", make_byte_level_decoder}};

}  // namespace

}  // namespace masque::text
