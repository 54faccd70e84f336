// Any bytes as an experiment file: each setting has its line, and one that can stand in such a line
// reads back.
#include "cli/experiment.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/memory_file.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  std::vector<cli::Setting> settings;
  if (!test::accepts([&] { settings = cli::read_settings(test::MemoryFile(input).path()); }))
    return;
  for (const cli::Setting& setting : settings) {
    test::require(!setting.key.empty() && !setting.location.empty(), "a setting without a place");
    if (!cli::is_setting_value(setting.value)) continue;
    // Not in the first line, where a byte-order mark is no part of the key.
    const std::string line = "\n" + setting.key + " = " + setting.value + "\n";
    const auto again = cli::read_settings(test::MemoryFile(line).path());
    test::require(
        again.size() == 1 && again[0].key == setting.key && again[0].value == setting.value,
        "a setting that does not read back");
  }
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_lines)
