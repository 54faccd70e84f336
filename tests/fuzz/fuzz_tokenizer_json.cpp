// Any bytes as a tokenizer.json, a NUL, and a text: no crash, and the fast way gives the same ids.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_files.hpp"

namespace {

void use(const masque::text::Tokenizer& tokenizer, std::string_view raw) {
  std::string text;
  masque::append_replacing_invalid(raw, text);
  const masque::text::EncodeOptions options;
  const auto encoding = tokenizer.encode(text, options);
  std::vector<masque::TokenId> ids;
  masque::text::IdEncoder(tokenizer, options).encode(text, ids);
  if (ids != encoding.ids) {
    std::fprintf(stderr, "fuzz_tokenizer_json: other ids on the fast way\n");
    std::abort();
  }
  tokenizer.decode(ids, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(all.find('\0'), all.size());
  try {
    const masque::text::Tokenizer tokenizer(
        masque::text::read_tokenizer_json(all.substr(0, end), "fuzz"));
    use(tokenizer, all.substr(std::min(end + 1, all.size())));
  } catch (const masque::InputError&) {
    return 0;
  }
  return 0;
}
