#include "text/tokenizer_digest.hpp"

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/parallel.hpp"

namespace masque::text {

namespace {

/// Letters with and without accents, digits, spaces, signs and scripts that steps treat
/// differently.
constexpr std::array<std::string_view, 5> kLines{
    "The quick brown fox doesn't jump over 1,234.50 lazy dogs!  (It naps...)",
    " Café naïve coöperate İstanbul Straße ﬁne e\u0301 \u00a0 \u200b x\t y",
    "我爱北京 東京 한국어 Привет мир שלום مرحبا हिन्दी ไทย",
    "https://example.org/a_b?c=d&e=%20 C++20 #tag @name 🙂 👩‍🔬 ½ ™",
    "[CLS] <s> </s> <mask> [MASK] <|endoftext|> ##ing ▁word Ġword"};

}  // namespace

std::string tokenizer_digest(const Tokenizer& tokenizer) {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  // Lengths in front: "a", "bc" is not "ab", "c".
  const auto add_size = [&](std::size_t size) {
    const std::uint64_t number = size;
    hasher->add(std::as_bytes(std::span(&number, 1)));
  };
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const std::string_view token = tokenizer.token(static_cast<TokenId>(i));
    add_size(token.size());
    hasher->add(as_bytes(token));
  }
  IdEncoder encoder = tokenizer.id_encoder({});
  for (const std::string_view line : kLines) {
    std::vector<TokenId> ids;
    // Without an unknown token the ids so far are no result.
    if (input_error_message([&] { encoder.encode(line, ids); })) ids = {-1};
    add_size(ids.size());
    hasher->add(std::as_bytes(std::span(ids)));
  }
  return hasher->digest();
}

}  // namespace masque::text
