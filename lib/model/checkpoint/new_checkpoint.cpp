#include "model/checkpoint/new_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/random/random.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/detector.hpp"
#include "model/known_keys.hpp"
#include "store/sharding.hpp"
#include "tensor/convert.hpp"

namespace masque::model {

namespace {

/// None where config.json says so; the head that a class in `architectures` has, else the first of
/// the plan; nullptr: it has none.
const HeadPlan* head_to_make(const Family& family, const ModelPlan& plan,
                             const store::ModelConfig& config) {
  if (plan.headless) return nullptr;
  if (plan.design.source) {
    const auto tied =
        std::ranges::find_if(plan.heads, [](const HeadPlan& head) { return head.design.tied; });
    if (tied != plan.heads.end()) return &*tied;
    throw InputError(config.path(),
                     fmt::format("tie_word_embeddings is false, expected true: a new checkpoint of "
                                 "family {} has one table for encoder, decoder and head",
                                 family.name));
  }
  for (const std::string& name : config.architectures()) {
    for (const HeadPlan& head : plan.heads) {
      if (class_name(family, config.model_type(), head.design.kind) == name) return &head;
    }
  }
  return plan.heads.empty() ? nullptr : &plan.heads.front();
}

/// The family's own start of a tensor, else that of its role.
StartValue start_of(const PlacedTensor& tensor, const StartValues& by_role,
                    const std::vector<StartRule>& rules) {
  const TensorPart& part = tensor.parts[0];
  const auto is_role = [&](const StartRule& rule) {
    return rule.role == part.role && rule.layer.value_or(part.layer) == part.layer;
  };
  const auto own = std::ranges::find_if(rules, is_role);
  if (!tensor.bias && own != rules.end()) return own->start;
  return by_role.of(part.role, tensor.bias, part.part);
}

void add_tensors(const Family& family, const FamilyConfig& config, const ModelPlan& plan,
                 const HeadPlan* head, std::vector<NewTensor>& to) {
  const StartValues by_role(plan.design, start_range(config));
  const StartValues of_detector =
      plan.design.variants.detector ? StartValues(detector_design(plan.design), start_range(config))
                                    : by_role;
  const std::vector<StartRule> rules = family.starts == nullptr
                                           ? padded_starts(config, plan.design)
                                           : family.starts(config, plan.design);
  for (const PlacedTensor& tensor : placed_tensors(plan, head)) {
    for (std::string& name : written_names(plan, tensor)) {
      // Two parts of a model may have one table.
      if (std::ranges::find(to, name, &NewTensor::name) != to.end()) continue;
      to.push_back({std::move(name), tensor.shape,
                    start_of(tensor, tensor.detector ? of_detector : by_role, rules)});
    }
  }
  for (const ComputedTensor& tensor : plan.computed)
    to.push_back({with_base(plan, tensor.name), tensor.shape, tensor.start});
  for (const NewTensor& tensor : to) {
    if (byte_count(DType::kF64, tensor.shape)) continue;
    throw InputError(config.raw().path(),
                     fmt::format("tensor {} would have shape {}, which is too large", tensor.name,
                                 shape_text(tensor.shape)));
  }
}

/// Whether the family is the config's own, not one that was requested for it.
bool is_own_family(const Family& family, const store::ModelConfig& config) {
  return std::ranges::find(family.model_types, config.model_type()) != family.model_types.end();
}

/// The config with the class that has the tensors of this head.
std::string config_with_class(const Family& family, const store::ModelConfig& config,
                              HeadKind kind) {
  const std::string name = class_name(family, config.model_type(), kind);
  const std::vector<std::string> known = config.architectures();
  if (name.empty() || !is_own_family(family, config) ||
      std::ranges::find(known, name) != known.end())
    return config.text();
  return set_json_member(config.text(), {"architectures"}, json_array(std::array{name}));
}

/// Whether values of this start fit a type.
bool can_hold(DType dtype, const StartValue& start) {
  // The largest normal value that is drawn is below 7 deviations.
  double largest = std::abs(start.mean) + 7 * start.deviation;
  for (const double value : start.values) largest = std::max(largest, std::abs(value));
  std::array<std::byte, 8> probe{};
  const MutableBytes bytes = MutableBytes(probe).first(dtype_bits(dtype) / 8);
  from_double(dtype, {&largest, 1}, bytes);
  to_double(dtype, bytes, {&largest, 1});
  return std::isfinite(largest);
}

store::OutputTensor random_tensor(NewTensor tensor, DType dtype, std::uint64_t seed) {
  const RandomStream stream(seed, tensor.name);
  store::TensorInfo info{.name = std::move(tensor.name), .dtype = dtype, .shape = tensor.shape};
  return started_tensor(std::move(info), std::move(tensor.start), stream);
}

store::OutputWeights random_weights(NewModel model, const std::string& path, DType dtype,
                                    std::uint64_t seed) {
  store::OutputWeights weights;
  weights.name = "model.safetensors";
  weights.metadata = {{"format", "pt"}};
  for (NewTensor& tensor : model.tensors) {
    if (!can_hold(dtype, tensor.start)) {
      throw InputError(path,
                       fmt::format("tensor '{}' would start with standard deviation {}, expected "
                                   "values that {} can hold",
                                   escape(tensor.name), tensor.start.deviation, dtype_name(dtype)));
    }
    weights.tensors.push_back(random_tensor(std::move(tensor), dtype, seed));
  }
  return weights;
}

}  // namespace

NewModel new_model(const Family& family, const store::ModelConfig& config) {
  const FamilyConfig options(config);
  ModelPlan plan = family.plan(options);
  NewModel model;
  if (makes_decoder(family, config)) {
    add_tensors(family, options, plan, nullptr, model.tensors);
    plan = family.decoder(options);
  }
  const HeadPlan* head = head_to_make(family, plan, config);
  plan.design.head = head == nullptr ? HeadDesign{} : head->design;
  add_tensors(family, options, plan, head, model.tensors);
  model.config = config_with_class(family, config, plan.design.head.kind);
  model.design = std::move(plan.design);
  std::vector<std::string> unknown = check_unused_keys(options, family, model.design);
  for (const auto& [name, known] : options.misspelt()) {
    model.notes.push_back(
        fmt::format("unknown key '{}'; did you mean '{}'?", escape(name), escape(known)));
    std::erase(unknown, name);
  }
  if (!unknown.empty()) model.notes.push_back(unknown_keys_note(unknown));
  return model;
}

NewCheckpointResult new_checkpoint(const std::string& config_path, const std::string& out,
                                   const NewCheckpointRequest& request) {
  if (!can_encode(request.dtype)) {
    throw UsageError(fmt::format("{} {}: conversion to this type is not supported", field("dtype"),
                                 dtype_name(request.dtype)));
  }
  const store::ModelConfig given = store::ModelConfig::read(config_path);
  const std::string requested = request.family.value_or("");
  const Family& family = choose_family(given, requested);
  const store::ModelConfig config = typed_config(given, family, requested);
  NewModel model = new_model(family, config);
  NewCheckpointResult result;
  result.family = family.name;
  for (const std::string& note : model.notes)
    result.notes.push_back(fmt::format("{}: {}", config_path, note));
  if (model.config != config.text()) {
    const std::vector<std::string> old = config.architectures();
    const std::string now = class_name(family, config.model_type(), model.design.head.kind);
    if (!old.empty())
      result.notes.push_back(
          fmt::format("architectures: {} is replaced by {}, the class that has these tensors",
                      escape(old.front()), now));
  }
  const std::string text = store::with_dtype(
      store::ModelConfig::parse(std::move(model.config), config.path()), request.dtype);
  store::OutputWeights weights =
      random_weights(std::move(model), config.path(), request.dtype, request.seed);
  result.tensors = weights.tensors.size();
  for (const store::OutputTensor& tensor : weights.tensors) {
    result.parameters += element_count(tensor.info.shape).value();
  }
  const std::vector<store::OutputWeights> shards = store::split_into_shards(
      std::move(weights), request.shard_bytes, store::TensorOrder::kReference);
  result.files = shards.size();
  std::vector<store::OutputExtra> extras;
  extras.push_back({"config.json", store::Literal{text}, text.size(), 0644});
  if (shards.size() > 1) extras.push_back(store::index_extra(shards));
  store::write_checkpoint_folder(out, shards, extras, request.write);
  return result;
}

}  // namespace masque::model
