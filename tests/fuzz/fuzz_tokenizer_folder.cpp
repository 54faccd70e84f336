// A folder with a tokenizer: the first byte says which files it has, which stand there with NULs
// between, and whose rules it is read by. What opens encodes and decodes.
#include "base/string/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "fuzz/tokenizer_parts.hpp"
#include "text/tokenizer.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void open(const std::string& path, text::Flavor flavor) {
  const text::Tokenizer tokenizer = text::Tokenizer::open(path, {.flavor = flavor});
  for (const std::string& warning : tokenizer.warnings()) {
    const std::string wrong = test::wrong_message(warning);
    test::require(wrong.empty(), wrong);
  }
  const auto encoding = tokenizer.encode("the caf\u00E9 [MASK] <mask>\u4E2D", {.special = true});
  for (const TokenId id : encoding.ids)
    test::require(id >= 0 && static_cast<std::size_t>(id) < tokenizer.size(), "an id beyond");
  tokenizer.decode(encoding.ids, true);
}

void check(std::string_view input) {
  if (input.empty()) return;
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const auto choice = static_cast<unsigned char>(input[0]);
  test::write_tokenizer(folder.path(), choice, input.substr(1));
  test::accepts([&] { open(folder.path(), static_cast<text::Flavor>(choice / 4 % 5)); });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_parts>)
