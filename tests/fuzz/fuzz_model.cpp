// A config.json, a NUL, and a file of weights, any bytes, quantised or not: a model or an
// InputError, no crash. What loads has every tensor that its design asks for, all numbers finite.
#include <cmath>
#include <string_view>

#include "base/error.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "model/checkpoint/load.hpp"
#include "store/checkpoint.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "support/memory_file.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)
using test::require;

void load(std::string_view config_text, std::string_view weights_text) {
  const test::MemoryFile config_file(config_text);
  const test::MemoryFile weights_file(weights_text);
  const store::ModelConfig config = store::ModelConfig::read(config_file.path());
  const model::Family& family = model::choose_family(config, "");
  const store::Checkpoint checkpoint =
      store::decode_weights(store::open_checkpoint(weights_file.path()), config);
  const model::LoadPlan plan =
      model::find_tensors(family.plan(model::FamilyConfig(config)), checkpoint,
                          store::NamedTensors(checkpoint, config));
  const auto weights = model::read_tensors<double>(plan, checkpoint);
  const model::Design& design = plan.design;
  require(weights.word_table.view.rows == design.vocab_size, "a word table of another size");
  for (const double x : weights.word_table.span()) require(std::isfinite(x), "not finite");
  require(static_cast<Index>(design.layers.size()) == design.num_hidden_layers, "layers");
  for (const model::LayerDesign& layer : design.layers) {
    const auto& own = weights.layers.at(static_cast<std::size_t>(layer.weights));
    require(static_cast<bool>(own.output.weight), "a layer without weights");
  }
  require((design.head.kind == model::HeadKind::kNone) != static_cast<bool>(weights.decoder.weight),
          "head and decoder disagree");
}

void check(std::string_view input) {
  const std::size_t end = input.find('\0');
  if (end == std::string_view::npos) return;
  test::accepts([&] { load(input.substr(0, end), input.substr(end + 1)); });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_config_and_weights)
