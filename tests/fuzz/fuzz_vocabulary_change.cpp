// The files of a tokenizer next to a table of 320 rows (as in tokenizer_folder, after a byte that
// says which change): tokens come, go, move or are called otherwise, and the files that are written
// say so.
#include "fuzz/changed_vocabulary.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "fuzz/tokenizer_parts.hpp"
#include "support/make_safetensors.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  if (input.size() < 2) return;
  static const test::TempFolder folder = test::TempFolder::in_memory();
  static const std::string model =
      test::make_safetensors({{"word", "F16", {320, 1}, std::string(640, '\x3c')}});
  const auto choice = static_cast<unsigned char>(input[0]);
  const auto kind = static_cast<unsigned char>(input[1]);
  std::filesystem::remove_all(folder / "out");
  test::write_file(folder / "in/model.safetensors", model);
  test::write_tokenizer(folder / "in", kind, input.substr(2));
  test::accepts([&] { test::change_and_read_back(folder / "in", folder / "out", choice, "word"); });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_parts, 2>)
