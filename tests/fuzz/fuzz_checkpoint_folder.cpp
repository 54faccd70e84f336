// A folder of two shards: the index, config.json and the side file of markers are the input, with
// NULs between. What opens has only tensors of its shards, and its markers read.
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "store/checkpoint.hpp"
#include "store/config.hpp"
#include "store/markers.hpp"
#include "support/make_safetensors.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  test::write_file(folder / "one.safetensors",
                   test::make_safetensors({test::bytes_tensor("a", "x")}));
  test::write_file(folder / "two.safetensors",
                   test::make_safetensors({test::bytes_tensor("b", "yz")}));
  test::InputParts parts(input);
  test::write_file(folder / "model.safetensors.index.json", parts.next());
  test::write_file(folder / "config.json", parts.next());
  test::write_file(folder / "one.safetensors.masque.json", parts.rest());
  test::accepts([&] {
    const store::Checkpoint checkpoint = store::open_checkpoint(folder.path());
    test::require(checkpoint.tensors().size() <= 2, "tensors of nowhere");
    for (const std::string& note : checkpoint.notes())
      test::require(test::wrong_message(note).empty(), "a note that is not safe to print");
    const store::Metadata markers = store::markers_of(checkpoint);
    const std::string side = store::side_file_text(markers);
    test::require(store::with_markers(side, markers) == side || markers.empty(), "other markers");
    if (const auto config = store::ModelConfig::find(folder.path())) {
      store::with_dtype(*config, DType::kF16);
      store::with_markers(config->text(), markers);
    }
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_parts)
