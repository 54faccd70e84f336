#include "model/checkpoint/load.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/checkpoint/text_head.hpp"
#include "model/known_keys.hpp"
#include "store/tensorflow/tf_plan.hpp"

namespace masque::model {

void check_bundle_sums(const store::Checkpoint& checkpoint) {
  if (!checkpoint.bundle()) return;
  for (const store::WeightsFile& file : checkpoint.files()) {
    if (const auto broken = check_sums(file.file, file.content)) throw_violation(*broken);
  }
}

template <class T>
LoadedModel<T> load_model(const std::string& path, const LoadOptions& options) {
  const store::Checkpoint checkpoint = store::open_checkpoint(path);
  const auto config = store::find_config(checkpoint);
  if (!config) {
    std::string missing = store::missing_config(checkpoint);
    if (missing.starts_with("no"))
      missing += ", nor bert_config.json, albert_config.json or electra_config.json";
    throw InputError(path, missing);
  }
  const Family& family = choose_family(*config, options.family);
  ModelPlan tensors = read_plan(family, FamilyConfig(*config));
  const store::NamedTensors names(checkpoint, config);
  choose_text_head(FamilyConfig(*config), names, tensors);
  LoadPlan plan = find_tensors(tensors, checkpoint, names);
  // Comparing them costs little next to reading.
  check_bundle_sums(checkpoint);
  LoadedModel<T> loaded;
  loaded.weights = read_tensors<T>(plan, checkpoint);
  loaded.design = std::move(plan.design);
  loaded.path = path;
  loaded.unused = std::move(plan.unused);
  return loaded;
}

template LoadedModel<float> load_model(const std::string&, const LoadOptions&);
template LoadedModel<double> load_model(const std::string&, const LoadOptions&);

}  // namespace masque::model
