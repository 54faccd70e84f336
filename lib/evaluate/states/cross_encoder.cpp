#include "evaluate/states/cross_encoder.hpp"

#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json_settings.hpp"
#include "evaluate/states/vector_steps.hpp"
#include "tensor/matrix.hpp"

namespace masque::evaluate {

namespace {

std::optional<kernel::Activation> named_activation(JsonSettings& settings, std::string_view name) {
  const std::optional<std::string> given = settings.string(name);
  if (!given) return std::nullopt;
  const auto found = find_torch_activation(*given);
  if (!found)
    settings.refuse(
        name, "torch.nn's Identity, Tanh, ReLU, GELU, SiLU, Sigmoid, LeakyReLU, Mish or ReLU6");
  return found;
}

/// Throws InputError unless the modules of the file `path` are one Transformer.
void check_modules(const std::string& path) {
  const JsonValue list =
      parse_json_file(InputFile::open(path).read_all(std::uint64_t{16} << 20), path);
  if (list.is(JsonKind::kArray) && list.items.size() == 1 &&
      list.items[0].text_of("type").ends_with("Transformer"))
    return;
  throw InputError(path,
                   "expected a list of one Transformer: a cross-encoder with other modules is not "
                   "supported");
}

/// Throws InputError for settings of the Transformer that may change the numbers.
void check_task_of_pairs(const std::string& path) {
  JsonSettings settings = JsonSettings::read(path);
  settings.need("transformer_task", "sequence-classification");
  settings.need("module_output_name", "scores");
  JsonSettings modalities = settings.object("modality_config");
  JsonSettings text = modalities.object("text");
  text.need("method", "forward");
  text.need("method_output_name", "logits");
  std::vector<std::string> others = settings.unknown();
  for (const JsonSettings* inner : {&modalities, &text}) {
    for (const std::string& name : inner->unknown()) others.push_back(name);
  }
  if (others.empty()) return;
  throw InputError(path,
                   fmt::format("{} is not supported for cross-encoders", escape(others.front())));
}

}  // namespace

kernel::Activation read_pair_activation(const std::string& path) {
  const std::string folder = is_folder(path) ? path : folder_of(path);
  const std::string modules = join(folder, "modules.json");
  const std::string own_file = join(folder, "config_sentence_transformers.json");
  if (exists(modules)) {
    check_modules(modules);
    check_task_of_pairs(join(folder, "sentence_bert_config.json"));
  }
  // Without modules sentence-transformers does not look at it.
  if (exists(modules) && exists(own_file)) {
    JsonSettings settings = JsonSettings::read(own_file);
    settings.need("model_type", "CrossEncoder");
    if (settings.find("default_prompt_name") != nullptr)
      settings.refuse("default_prompt_name", "none: prompts of cross-encoders are not supported");
    if (const auto found = named_activation(settings, "activation_fn")) return *found;
  }
  const std::string file = join(folder, "config.json");
  if (!exists(file)) return kernel::Activation::kSigmoid;
  JsonSettings settings = JsonSettings::read(file);
  JsonSettings own = settings.object("sentence_transformers");
  if (const auto found = named_activation(own, "activation_fn")) return *found;
  if (const auto found = named_activation(settings, "sbert_ce_default_activation_function"))
    return *found;
  return settings.string("problem_type") == "regression" ? kernel::Activation::kNone
                                                         : kernel::Activation::kSigmoid;
}

double activated(kernel::Activation activation, double score) {
  kernel::activation_forward(activation, MatrixView<double>(&score, 1, 1));
  return score;
}

}  // namespace masque::evaluate
