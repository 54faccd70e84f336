// A folder with a tokenizer: the first byte says which files it has, which stand there with NULs
// between, and whose rules it is read by. What opens encodes and decodes.
#include <unistd.h>

#include <array>

#include "base/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/temp_folder.hpp"
#include "text/tokenizer.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

constexpr std::array<const char*, 3> kSettings = {"tokenizer_config.json",
                                                  "special_tokens_map.json", "added_tokens.json"};

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
  test::InputParts parts(input.substr(1));
  std::vector<std::string> names;
  const auto put = [&](const char* name, std::string_view text) {
    names.push_back(folder / name);
    test::write_file(names.back(), text);
  };
  put("config.json", parts.next());
  for (const char* name : kSettings)
    if (const std::string_view text = parts.next(); !text.empty()) put(name, text);
  switch (choice % 4) {
    case 0: put("vocab.txt", parts.rest()); break;
    case 1:
      put("vocab.json", parts.next());
      put("merges.txt", parts.rest());
      break;
    case 2: put("spiece.model", parts.rest()); break;
    default: put("tokenizer.json", parts.rest()); break;
  }
  test::accepts([&] { open(folder.path(), static_cast<text::Flavor>(choice / 4 % 5)); });
  for (const std::string& name : names) ::unlink(name.c_str());
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_parts)
