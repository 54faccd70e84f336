// Any bytes as a tokenizer.json, a NUL, and a text: no crash, and the fast way gives the same ids.
#include <string_view>

#include "base/error.hpp"
#include "base/string/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/tokenizer.hpp"

namespace {

void use(const masque::text::Tokenizer& tokenizer, std::string_view raw) {
  std::string text;
  masque::append_replacing_invalid(raw, text);
  const masque::text::EncodeOptions options;
  const auto encoding = tokenizer.encode(text, options);
  std::vector<masque::TokenId> ids;
  masque::text::IdEncoder(tokenizer, options).encode(text, ids);
  masque::test::require(ids == encoding.ids, "other ids on the fast way");
  tokenizer.decode(ids, true);
}

void check(std::string_view input) {
  masque::test::InputParts parts(input);
  const std::string_view json = parts.next();
  masque::test::accepts([&] {
    use(masque::text::Tokenizer(masque::text::read_tokenizer_json(json, "fuzz")), parts.rest());
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_parts)
