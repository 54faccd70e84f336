// A config.json, a NUL, and a file of weights, any bytes: a model or an InputError, no crash. What
// loads has every tensor that its design asks for, all numbers finite.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "model/checkpoint/load.hpp"
#include "store/checkpoint.hpp"
#include "support/memory_file.hpp"

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_model: %s\n", what);
  std::abort();
}

void load(std::string_view config_text, std::string_view weights_text) {
  using namespace masque;  // NOLINT(google-build-using-namespace)
  const test::MemoryFile config_file(config_text);
  const test::MemoryFile weights_file(weights_text);
  const store::ModelConfig config = store::ModelConfig::read(config_file.path());
  const model::Family& family = model::choose_family(config, "");
  const store::Checkpoint checkpoint = store::open_checkpoint(weights_file.path());
  const model::LoadPlan plan =
      model::find_tensors(family.plan(model::FamilyConfig(config)), checkpoint,
                          store::NamedTensors(checkpoint, config));
  const auto weights = model::read_tensors<double>(plan, checkpoint);
  const model::Design& design = plan.design;
  check(weights.word_table.view.rows == design.vocab_size, "a word table of another size");
  for (const double x : weights.word_table.span()) check(std::isfinite(x), "not finite");
  check(static_cast<Index>(design.layers.size()) == design.num_hidden_layers, "layers");
  for (const model::LayerDesign& layer : design.layers) {
    const auto& own = weights.layers.at(static_cast<std::size_t>(layer.weights));
    check(static_cast<bool>(own.output.weight), "a layer without weights");
  }
  check((design.head.kind == model::HeadKind::kNone) != static_cast<bool>(weights.decoder.weight),
        "head and decoder disagree");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  if (end == std::string_view::npos) return 0;
  try {
    load(input.substr(0, end), input.substr(end + 1));
  } catch (const masque::InputError&) {  // what most inputs should give
  }
  return 0;
}
