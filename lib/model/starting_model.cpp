#include "model/starting_model.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/parallel.hpp"
#include "store/tensorflow/tf_plan.hpp"

namespace masque::model {

namespace {

store::ModelConfig config_of_checkpoint(const store::Checkpoint& checkpoint) {
  auto config = store::find_config(checkpoint);
  if (!config) throw InputError(checkpoint.path(), "no config.json next to the weights");
  return *std::move(config);
}

/// Whether two heads are the same but for the tie.
bool alike(HeadDesign a, const HeadDesign& b) {
  a.tied = b.tied;
  return a == b;
}

}  // namespace

StartingModel::StartingModel(const std::string& path)
    : checkpoint_(store::open_checkpoint(path)),
      config_(config_of_checkpoint(checkpoint_)),
      names_(checkpoint_, config_),
      family_(choose_family(config_, "")),
      plan_(family_.plan(FamilyConfig(config_))),
      found_(find_tensors(plan_, checkpoint_, names_)) {
  check_bundle_sums(checkpoint_);
  const HeadDesign& head = found_.design.head;
  if (head.kind == HeadKind::kNone) return;
  for (HeadPlan& own : plan_.heads) {
    if (alike(own.design, head)) own.design.tied = head.tied;
  }
}

std::optional<HeadDesign> StartingModel::head(HeadKind kind) const {
  if (found_.design.head.kind == kind) return found_.design.head;
  for (const HeadPlan& own : plan_.heads) {
    if (own.design.kind == kind) return own.design;
  }
  return std::nullopt;
}

const HeadPlan* StartingModel::head_plan(const HeadDesign& head) const {
  return head.kind == HeadKind::kNone ? nullptr : head_like(plan_, head);
}

bool StartingModel::writes(const Design& design) const {
  if (design.head.kind != HeadKind::kNone && head_plan(design.head) == nullptr) return false;
  Design own = plan_.design;
  own.head = design.head;
  own.mask_token_id = design.mask_token_id;
  return same_design(own, design);
}

ModelPlan StartingModel::plan(const Design& design) const {
  if (!writes(design)) {
    ModelPlan other;
    if (const auto problem = usage_problem_of([&] { other = plan_of(design); })) {
      throw UsageError(
          fmt::format("{}, changed as training needs it, is a design that no family "
                      "writes: {}",
                      escape(path()), *problem));
    }
    return other;
  }
  ModelPlan plan = plan_;
  plan.design.head = design.head;
  plan.design.mask_token_id = design.mask_token_id;
  return plan;
}

std::string StartingModel::config_text(const Design& design) const {
  std::string text = store::with_dtype(config_, DType::kF32);
  const auto set = [&](const char* name, const std::string& value) {
    text = set_json_member(text, {name}, value);
  };
  if (config_.model_type().empty()) set("model_type", quote_json(family_.model_types.front()));
  const HeadDesign& head = design.head;
  const std::string name = class_name(family_, config_.model_type(), head.kind);
  if (head.kind != found_.design.head.kind && !name.empty())
    set("architectures", fmt::format("[{}]", quote_json(name)));
  const bool has_words = head.kind == HeadKind::kMasked || head.kind == HeadKind::kCausal;
  if (has_words && !head.tied && config_.tie_word_embeddings().value_or(true))
    set("tie_word_embeddings", "false");
  return text;
}

/// All names of a tensor that the checkpoint has.
std::vector<std::string> StartingModel::names_in_file(const PlacedTensor& tensor) const {
  std::vector<std::string> found;
  for_spellings(tensor.names, [&](std::string_view spelling) {
    const bool based = spelling.starts_with('~');
    const std::string bare(based ? spelling.substr(1) : spelling);
    std::vector<std::string> all = {bare};
    if (based) all.insert(all.begin(), plan_.prefix + bare);
    for (const std::string& name : all) {
      const std::string old = old_norm_name(name);
      if (names_.find(name) == nullptr && (old.empty() || names_.find(old) == nullptr)) continue;
      found.push_back(name);
      return;
    }
  });
  return found;
}

void StartingModel::add_unused(bool same_head, std::vector<store::OutputTensor>& tensors) const {
  if (names_.tf() != nullptr) return;
  // A file without a head may lack the prefix of the base model, which it has next to a head.
  const auto has_prefix = [&](const store::TensorInfo& info) {
    return info.name.starts_with(plan_.prefix);
  };
  const bool bare = !same_head && std::ranges::none_of(checkpoint_.tensors(), has_prefix);
  const std::string prefix = bare ? plan_.prefix : "";
  std::set<std::string> known;
  for (const store::OutputTensor& tensor : tensors) {
    known.insert(tensor.info.name);
    known.insert(old_norm_name(tensor.info.name));
  }
  for (const store::WeightsFile& file : checkpoint_.files()) {
    for (const store::TensorInfo& info : file.content.tensors) {
      const std::string name = prefix + info.name;
      if (known.contains(name)) continue;
      store::OutputTensor& copy = tensors.emplace_back();
      copy.info = info;
      copy.info.name = name;
      copy.source = store::source_of(file.file, info);
    }
  }
}

ModelFiles StartingModel::files(const Design& design, const ModelWeights<float>& weights,
                                const TrainingConfig& training) const {
  if (!writes(design)) return model_files(design, weights, training);
  const ModelPlan plan = this->plan(design);
  const bool same_head = design.head == found_.design.head;
  ModelFiles files;
  files.weights.name = "model.safetensors";
  files.weights.metadata = {{"format", "pt"}};
  std::vector<store::OutputTensor>& tensors = files.weights.tensors;
  std::vector<NamedTensor> named = named_tensors(plan, weights);
  const HeadPlan* head = head_plan(design.head);
  if (same_head && head != nullptr && design.head.tied && !head->decoder.empty()) {
    // A copy of the word table that the file has, though it is tied.
    for (PlacedTensor& placed :
         place_row(plan.design, {head->decoder, {Role::kDecoder}, Parts::kTensor})) {
      if (names_in_file(placed).empty()) continue;
      NamedTensor copy;
      copy.name = written_name(plan, placed);
      copy.parts = {weights.word_table.view};
      copy.placed = std::move(placed);
      named.push_back(std::move(copy));
    }
  }
  std::set<std::string> written;
  for (NamedTensor& tensor : named) {
    std::vector<std::string> names;
    if (same_head) names = names_in_file(tensor.placed);
    if (names.empty()) names = {tensor.name};
    for (const std::string& name : names) {
      if (!written.insert(name).second) continue;
      NamedTensor one = tensor;
      one.name = name;
      tensors.push_back(output_tensor(std::move(one)));
    }
  }
  add_unused(same_head, tensors);
  std::ranges::sort(tensors, {}, [](const store::OutputTensor& t) { return t.info.name; });
  const std::string text = config_text(design);
  files.config = {"config.json", store::Literal{text}, text.size(), 0644};
  return files;
}

}  // namespace masque::model
