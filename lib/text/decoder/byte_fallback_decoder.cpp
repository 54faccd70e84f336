// ByteFallback: tokens <0xHH> back to bytes.
#include "base/utf8.hpp"
#include "text/decoder.hpp"

namespace masque::text {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The byte of "<0xHH>"; −1 for other tokens.
int byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  // Rust reads "+F" as a number, too.
  const int high = token[3] == '+' ? 0 : hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void flush(std::string& bytes, std::vector<std::string>& out) {
  if (bytes.empty()) return;
  if (valid_utf8(bytes)) {
    out.push_back(bytes);
  } else {
    out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
  }
  bytes.clear();
}

class ByteFallbackDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    for (std::string& token : tokens) {
      const int byte = byte_of(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush(bytes, out);
      out.push_back(std::move(token));
    }
    flush(bytes, out);
    tokens = std::move(out);
  }
};

std::unique_ptr<Decoder> make_byte_fallback_decoder(const JsonValue& /*json*/,
                                                    const std::string& /*path*/) {
  return std::make_unique<ByteFallbackDecoder>();
}

const DecoderRegistration kRegistration{{"ByteFallback", make_byte_fallback_decoder}};

}  // namespace

}  // namespace masque::text
