// A config.json, by the family that it names: a plan with as many layers as it says, or an error.
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "model/family.hpp"
#include "store/config.hpp"
#include "text/open/tokenizer_files.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void plan(const store::ModelConfig& config) {
  const model::Family& family = model::choose_family(config, "");
  const model::FamilyConfig fields(config);
  const model::ModelPlan plan = family.plan(fields);
  const model::Design& design = plan.design;
  test::require(design.num_hidden_layers >= 1 && design.vocab_size >= 1, "a size below 1");
  test::require(static_cast<Index>(design.layers.size()) == design.num_hidden_layers, "layers");
  for (const model::TensorRow& row : plan.rows) {
    test::require(!row.name.empty() && !row.roles.empty(), "a row of nothing");
  }
  if (family.starts != nullptr) family.starts(fields, design);
}

void check(std::string_view input) {
  test::accepts([&] { plan(store::ModelConfig::parse(std::string(input), "config.json")); });
  test::accepts([&] { text::config_tokenizer(std::string(input), {}); });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_json)
