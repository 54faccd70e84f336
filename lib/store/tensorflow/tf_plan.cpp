#include "store/tensorflow/tf_plan.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/object_graph.hpp"

namespace masque::store {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t kListed = 8;  // names in a note

/// Tensors of transformers that nothing learned: every reader makes them itself.
constexpr std::array kBuffers{"embeddings.position_ids"sv, "embeddings.token_type_ids"sv,
                              "encoder.embed_positions.weight"sv};

std::string listed(const std::vector<std::string>& names) {
  std::string text =
      comma_list(std::span(names).first(std::min(names.size(), kListed)),
                 [](const std::string& name) { return fmt::format("'{}'", escape(name)); });
  if (names.size() > kListed) text += fmt::format(" and {} more", names.size() - kListed);
  return text;
}

void note_unknown(NamePlan& plan, std::string_view family) {
  if (plan.unknown.empty()) return;
  plan.notes.push_back(fmt::format("{} unknown to the table '{}' kept: {}",
                                   counted(plan.unknown.size(), "name"), family,
                                   listed(plan.unknown)));
}

/// No table has names of tensors without a DType: a matrix of them could not be transposed.
void add_opaque(NamePlan& plan, const Checkpoint& checkpoint) {
  for (const OpaqueTensor& tensor : checkpoint.opaque()) {
    if (tensor.name != kGraphKey) plan.unknown.push_back(tensor.name);
  }
}

/// Whether a name may be given: a matrix is transposed only if it is one.
bool fits(const TensorInfo& tensor, const std::optional<NewName>& name) {
  return name &&
         (!name->transposed || (tensor.shape.size() == 2 && dtype_bits(tensor.dtype) % 8 == 0));
}

/// The table that gives a checkpoint its names: by model_type, else by the base model's prefix.
const TfFamily* written_family(const NameMap& names, const std::optional<ModelConfig>& config) {
  const std::string type = config ? config->model_type() : "";
  std::set<std::string_view> all;
  for (const auto& [old, now] : names) all.insert(now.name);
  const auto has = [&](std::string_view name) { return all.contains(name); };
  const auto is_of = [&](const TfFamily& family) {
    if (!type.empty())
      return std::ranges::find(family.model_types, type) != family.model_types.end();
    const auto prefixed = [&](std::string_view name) { return name.starts_with(family.prefix); };
    return std::ranges::any_of(all, prefixed);
  };
  const TfFamily* found = nullptr;
  for (const TfFamily* family : tf_families()) {
    if (!family->is_written || !is_of(*family)) continue;
    if (std::ranges::any_of(family->heads, has)) return family;
    if (family->heads.empty()) found = family;
  }
  return found;
}

std::string known_types() {
  std::set<std::string_view> types;
  for (const TfFamily* family : tf_families())
    types.insert(family->model_types.begin(), family->model_types.end());
  return comma_list(types);
}

/// Tensors of one checkpoint on their way to TensorFlow's names.
class ToTf {
 public:
  ToTf(const Checkpoint& checkpoint, const NameMap& hf, const TfFamily& family)
      : checkpoint_(checkpoint), family_(family) {
    for (const auto& [old, now] : hf) by_hf_[now.name] = &checkpoint.get(old);
  }

  NamePlan run() && {
    for (const auto& [hf, tensor] : by_hf_) add(hf, *tensor);
    add_opaque(plan_, checkpoint_);
    note_unknown(plan_, family_.name);
    return std::move(plan_);
  }

 private:
  const TensorInfo* find(std::string_view hf) const {
    for (const std::string& name :
         {std::string(hf),
          std::string(hf).erase(0, hf.starts_with(family_.prefix) ? family_.prefix.size() : 0)}) {
      if (const auto found = by_hf_.find(name); found != by_hf_.end()) return found->second;
    }
    return nullptr;
  }

  void add(const std::string& hf, const TensorInfo& tensor) {
    if (!family_.decoder.empty() && hf == family_.decoder) {
      const std::string words = fmt::format("{}embeddings.word_embeddings.weight", family_.prefix);
      return leave_out_tied(tensor, find(words));
    }
    const bool second = !family_.decoder_bias.empty() && hf == family_.decoder_bias;
    if (second && find(family_.bias) != nullptr) return leave_out_tied(tensor, find(family_.bias));
    const auto ends = [&](std::string_view end) { return hf.ends_with(end); };
    if (std::ranges::any_of(kBuffers, ends)) {
      plan_.left_out.push_back(tensor.name);
      plan_.notes.push_back(
          fmt::format("'{}' is left out: readers compute it", escape(tensor.name)));
      return;
    }
    auto name = tf_name(family_, second ? family_.bias : hf);
    if (fits(tensor, name)) {
      plan_.names[tensor.name] = *std::move(name);
    } else {
      plan_.unknown.push_back(tensor.name);
    }
  }

  void leave_out_tied(const TensorInfo& tensor, const TensorInfo* other) {
    if (other == nullptr || !same_values(checkpoint_, tensor, *other)) {
      throw InputError(checkpoint_.path(),
                       fmt::format("'{}' differs from '{}', but TensorFlow's layout ties them "
                                   "(embed-fix tie merges them)",
                                   escape(tensor.name),
                                   other == nullptr ? "the word table" : escape(other->name)));
    }
    plan_.left_out.push_back(tensor.name);
    plan_.notes.push_back(fmt::format("'{}' is left out: it equals '{}', to which it is tied",
                                      escape(tensor.name), escape(other->name)));
  }

  const Checkpoint& checkpoint_;
  const TfFamily& family_;
  std::map<std::string, const TensorInfo*> by_hf_;
  NamePlan plan_;
};

}  // namespace

NamePlan hf_of_tf(const Checkpoint& checkpoint, const TfFamily& family) {
  NamePlan plan;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (is_optimizer_state(checkpoint, tensor)) {
      plan.left_out.push_back(tensor.name);
      continue;
    }
    auto name = hf_name(family, tensor.name);
    if (fits(tensor, name)) {
      plan.names[tensor.name] = *std::move(name);
    } else {
      plan.unknown.push_back(tensor.name);
    }
  }
  add_opaque(plan, checkpoint);
  if (!plan.left_out.empty()) {
    plan.notes.push_back(fmt::format("{} of the optimizer's state left out: {}",
                                     counted(plan.left_out.size(), "tensor"),
                                     listed(plan.left_out)));
  }
  note_unknown(plan, family.name);
  return plan;
}

TfPlan tf_names(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config,
                const NamePlan& hf) {
  if (find_tf_family(checkpoint, config) != nullptr) {
    NamePlan plan;
    plan.notes.emplace_back("the names are already those of TensorFlow");
    return {std::move(plan)};
  }
  const TfFamily* family = written_family(hf.names, config);
  if (family == nullptr) {
    const std::string type = config ? config->model_type() : "";
    throw InputError(
        checkpoint.path(),
        fmt::format("{}: TensorFlow's names are known only for {}",
                    type.empty() ? "no model_type, and no tensor names of a known model"
                                 : fmt::format("model_type \"{}\"", escape(type)),
                    known_types()));
  }
  return {ToTf(checkpoint, hf.names, *family).run(), family};
}

std::optional<ModelConfig> find_config(const Checkpoint& checkpoint) {
  auto config = ModelConfig::find(checkpoint.folder());
  if (config && checkpoint.is_decoded()) config = without_quantization(*config);
  if (!config || !config->model_type().empty()) return config;
  const TfFamily* family = find_tf_family(checkpoint, config);
  if (family == nullptr) return config;
  std::string text = config->text();
  for (const auto& [name, value] : family->fields(checkpoint)) {
    // T-TA's config may be a copy of BERT's: the table that is not there decides.
    if (config->has(name) && name != "type_vocab_size") continue;
    text = set_json_member(text, {name}, value);
  }
  return ModelConfig::parse(std::move(text), config->path());
}

std::string missing_config(const Checkpoint& checkpoint) {
  if (exists(join(checkpoint.folder(), kAdapterConfig))) {
    return fmt::format(
        "a PEFT adapter, expected a model: 'ckpt merge-adapter BASE ADAPTER {} OUTPUT' adds it to "
        "its base",
        field("output"));
  }
  if (std::string problem = gguf_problem(checkpoint); !problem.empty()) return problem;
  return "no config.json next to the weights, expected the model's (ckpt convert copies it into an "
         "output that is a folder)";
}

void refuse_adapter_beside(const Checkpoint& checkpoint) {
  if (!checkpoint.has_adapter()) return;
  const std::string folder = escape(checkpoint.folder());
  throw InputError(
      checkpoint.path(),
      fmt::format("a PEFT adapter ({}) next to the weights, expected a model alone: 'ckpt "
                  "merge-adapter {} {} {} OUTPUT' adds it to its base; without that file the "
                  "weights alone are the model",
                  kAdapterConfig, escape(checkpoint.path()), folder, field("output")));
}

ModelConfig need_config(const Checkpoint& checkpoint) {
  auto config = find_config(checkpoint);
  if (!config) throw InputError(checkpoint.path(), missing_config(checkpoint));
  return *std::move(config);
}

std::string tf_config(const ModelConfig& config) {
  if (config.tie_word_embeddings().value_or(true)) return config.text();
  return set_json_member(config.text(), {"tie_word_embeddings"}, "true");
}

}  // namespace masque::store
