// A byte that says which change, and a GGUF file: its own vocabulary changes with its table, and
// what is written says so.
#include "fuzz/changed_vocabulary.hpp"
#include "fuzz/mutators/mutator.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  if (input.empty()) return;
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const auto choice = static_cast<unsigned char>(input[0]);
  test::write_file(folder / "in.gguf", input.substr(1));
  test::accepts([&] {
    test::change_and_read_back(folder / "in.gguf", folder / "out.gguf", choice, std::nullopt);
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_gguf>)
