// A config.json, a NUL, and a file of weights: what fine-tuning to labels starts from.
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/temp_folder.hpp"
#include "train/classify/classify_run.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  test::InputParts parts(input);
  test::write_file(folder / "config.json", parts.next());
  test::write_file(folder / "model.safetensors", parts.rest());
  test::accepts([&] {
    const train::ClassifierStart start = train::start_of(folder.path(), false);
    const auto labels = static_cast<Index>(start.names.size());
    test::require(start.label_weight.rows() == labels || labels == 0, "labels without a row");
    test::require(labels == 0 || start.pooling.has_value(), "labels without pooling");
    test::require(
        start.pooler_weight.rows() == 0 || start.pooler_weight.rows() == start.design.hidden_size,
        "a pooler of another size");
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_config_and_weights)
