#include "surgery/names/name_rules.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "model/family_names.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensorflow/tf_names.hpp"
#include "store/tensorflow/tf_plan.hpp"

namespace masque::surgery {

namespace {

using namespace std::string_view_literals;

/// Prefixes of programs that wrap a model: DataParallel, torch.compile.
constexpr std::array kWrappers{"module."sv, "_orig_mod."sv};

/// Families whose own files come without the base prefix even for a whole language model.
constexpr std::array kBareFamilies{"gpt2"sv};

/// Names that a family's files may have besides those of its language model. "~": see FamilyNames.
constexpr std::array kFurther{
    "~pooler.dense.weight"sv,
    "~pooler.dense.bias"sv,
    "~pooler.weight"sv,
    "~pooler.bias"sv,
    "cls.seq_relationship.weight"sv,
    "cls.seq_relationship.bias"sv,
    "sop_classifier.classifier.weight"sv,
    "sop_classifier.classifier.bias"sv,
    "discriminator_predictions.dense.weight"sv,
    "discriminator_predictions.dense.bias"sv,
    "discriminator_predictions.dense_prediction.weight"sv,
    "discriminator_predictions.dense_prediction.bias"sv,
    "classifier.weight"sv,
    "classifier.bias"sv,
};

/// Whether a name is one of a pattern's, where "{l}" stands for a number, "*" for weight or bias.
bool matches(std::string_view pattern, std::string_view name) {
  while (!pattern.empty()) {
    if (pattern == "*") return name == "weight" || name == "bias";
    if (pattern[0] != '{') {
      if (name.empty() || name[0] != pattern[0]) return false;
      name.remove_prefix(1);
      pattern.remove_prefix(1);
      continue;
    }
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0) return false;
    name.remove_prefix(digits);
    pattern.remove_prefix(pattern.find('}') + 1);
  }
  return name.empty();
}

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

std::string without_wrappers(std::string_view name) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!name.starts_with(wrapper)) continue;
      name.remove_prefix(wrapper.size());
      found = true;
    }
  }
  return std::string(name);
}

/// The names of one family.
class KnownNames {
 public:
  explicit KnownNames(const model::FamilyNames& family) : family_(family) {
    patterns_.assign(family.tensors.begin(), family.tensors.end());
    patterns_.insert(patterns_.end(), kFurther.begin(), kFurther.end());
    patterns_.insert(patterns_.end(), family.vocabulary.begin(), family.vocabulary.end());
    patterns_.insert(patterns_.end(), family.input_spellings.begin(), family.input_spellings.end());
    patterns_.insert(patterns_.end(), family.decoder_spellings.begin(),
                     family.decoder_spellings.end());
    patterns_.push_back(family.decoder_weight);
    for (const model::HeadCopy& copy : family.head_copies) patterns_.push_back(copy.name);
    for (const std::string_view pattern : patterns_) {
      if (pattern.starts_with('~')) base_.insert(first_part(pattern.substr(1)));
    }
  }

  /// Whether a name without the prefix would be one of the base model's.
  bool is_bare(const std::string& name) const {
    return !family_.prefix.empty() && !name.starts_with(family_.prefix) &&
           base_.contains(first_part(name));
  }

  bool knows(const std::string& name) const {
    const auto ends = [&](const model::BufferTensor& buffer) {
      return name.ends_with(buffer.ending);
    };
    if (std::ranges::any_of(family_.buffers, ends)) return true;
    return std::ranges::any_of(patterns_, [&](std::string_view pattern) {
      return !pattern.empty() && matches(model::with_prefix(pattern, family_.prefix), name);
    });
  }

 private:
  const model::FamilyNames& family_;
  std::vector<std::string_view> patterns_;
  std::set<std::string_view> base_;  ///< first parts of names in the base model
};

/// The config's family; without a config one whose files come bare, by its table.
std::shared_ptr<const model::FamilyNames> family_of(
    const std::set<std::string>& names, const std::optional<store::ModelConfig>& config) {
  if (config) return model::family_names_of(*config);
  for (const std::string_view name : kBareFamilies) {
    const model::FamilyNames* family = model::find_family_names(name);
    if (family != nullptr &&
        (names.contains(model::with_prefix(family->input_table, "")) ||
         names.contains(model::with_prefix(family->input_table, family->prefix))))
      return {std::shared_ptr<void>(), family};
  }
  return nullptr;
}

/// Whether the model that the config names has the base model inside, under its prefix.
bool has_prefix(const model::FamilyNames& family, const std::optional<store::ModelConfig>& config) {
  const auto classes = config ? config->architectures() : std::vector<std::string>();
  if (classes.empty()) return std::ranges::find(kBareFamilies, family.name) != kBareFamilies.end();
  return std::ranges::any_of(classes, [&](const std::string& name) {
    return name.find("For") != std::string::npos ||
           std::ranges::find(family.lm_classes, name) != family.lm_classes.end();
  });
}

/// Marks the matrices that lie the other way round.
void find_transposed(const store::Checkpoint& checkpoint, const model::FamilyNames& family,
                     store::NameMap& names) {
  if (family.in_out.tensors.empty()) return;
  const auto is_name = [&](const std::string& name, std::string_view pattern) {
    return matches(model::with_prefix(pattern, family.prefix), name) ||
           matches(model::with_prefix(pattern, ""), name);
  };
  const auto witness = std::ranges::find_if(
      names, [&](const auto& pair) { return is_name(pair.second.name, family.in_out.witness); });
  if (witness == names.end()) return;
  const Shape& shape = checkpoint.get(witness->first).shape;
  if (shape.size() != 2 || shape[0] != family.in_out.wide * shape[1]) return;
  for (auto& [old, now] : names) {
    const store::TensorInfo& tensor = checkpoint.get(old);
    const std::string& name = now.name;
    const auto is_now = [&](std::string_view pattern) { return is_name(name, pattern); };
    if (std::ranges::any_of(family.in_out.tensors, is_now) && tensor.shape.size() == 2 &&
        dtype_bits(tensor.dtype) % 8 == 0)
      now.transposed = true;
  }
}

}  // namespace

store::NamePlan hf_names(const store::Checkpoint& checkpoint,
                         const std::optional<store::ModelConfig>& config) {
  if (const store::TfFamily* tf = store::find_tf_family(checkpoint, config))
    return store::hf_of_tf(checkpoint, *tf);
  store::NamePlan plan;
  std::set<std::string> all;
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    std::string name = store::with_current_layer_norm(without_wrappers(tensor.name));
    all.insert(name);
    plan.names[tensor.name] = {std::move(name)};
  }
  const std::shared_ptr<const model::FamilyNames> family = family_of(all, config);
  if (family == nullptr && store::has_gguf_names(checkpoint)) {
    for (const store::TensorInfo& tensor : checkpoint.tensors())
      plan.unknown.push_back(tensor.name);
    for (const store::OpaqueTensor& tensor : checkpoint.opaque())
      plan.unknown.push_back(tensor.name);
    plan.notes.push_back(fmt::format(
        "{} of llama.cpp kept, the first '{}': {} hf converts names of PyTorch and TensorFlow only",
        counted(plan.unknown.size(), "name"), escape(plan.unknown.front()), field("names")));
    return plan;
  }
  if (family == nullptr) {
    plan.notes.emplace_back(
        "no config.json of a known family: only names of LayerNorm and prefixes of wrappers are "
        "converted");
    for (const store::TensorInfo& tensor : checkpoint.tensors())
      plan.unknown.push_back(tensor.name);
    return plan;
  }
  const KnownNames known(*family);
  const bool prefixed = has_prefix(*family, config);
  for (auto& [old, now] : plan.names) {
    if (prefixed && known.is_bare(now.name)) now.name = std::string(family->prefix) + now.name;
    if (known.knows(now.name) || known.knows(std::string(family->prefix) + now.name)) continue;
    plan.unknown.push_back(old);
  }
  if (const std::size_t unknown = plan.unknown.size(); unknown > 0) {
    plan.notes.push_back(fmt::format("{} for {} kept, the first '{}'",
                                     counted(unknown, "unknown name"), family->name,
                                     escape(plan.names.at(plan.unknown.front()).name)));
  }
  find_transposed(checkpoint, *family, plan.names);
  return plan;
}

}  // namespace masque::surgery
