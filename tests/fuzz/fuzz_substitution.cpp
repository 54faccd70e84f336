// An s/PATTERN/REPLACEMENT/, a NUL and a text: no crash, and bounded time and memory.
#include "cli/substitution.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  test::InputParts parts(input);
  const std::string word(parts.next());
  const std::string text(parts.rest());
  if (!cli::Substitution::is_one(word)) return;
  test::accepts([&] {
    const auto changed = cli::Substitution(word).apply(text);
    test::require(!changed || changed->size() <= 65536 + text.size(), "a text that is too long");
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_parts)
