#include "model/checkpoint/starting_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/changed_family.hpp"
#include "model/known_keys.hpp"
#include "model/start_value.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_plan.hpp"

namespace masque::model {

namespace {

/// Whether two heads are the same but for the tie.
bool alike(HeadDesign a, const HeadDesign& b) {
  a.tied = b.tied;
  return a == b;
}

/// Whether a tensor gives texts their labels, as ours and those of transformers do.
bool is_of_classifier(const store::TensorInfo& info) {
  return info.name.starts_with("classifier.");
}

}  // namespace

namespace {

ModelPlan plan_of(const Family& family, const FamilyConfig& config, StartingPart part) {
  const bool decoder = part == StartingPart::kDecoder && family.decoder != nullptr;
  ModelPlan plan = decoder ? family.decoder(config) : read_plan(family, config);
  // The tensors of the other part are not ignored.
  for (Skipped& skipped : plan.skipped) {
    if (part != StartingPart::kModel) skipped.what.clear();
  }
  return plan;
}

/// Leaves the word table of `plan` its first name alone, which no other part has.
void name_word_table_apart(ModelPlan& plan) {
  for (TensorRow& row : plan.rows) {
    if (row.roles[0] == Role::kWordTable) row.name.resize(row.name.find('|'));
  }
}

}  // namespace

StartingModel::StartingModel(const std::string& path, StartingPart part)
    : checkpoint_(store::open_decoded(path)),
      config_(with_family_type(store::need_config(checkpoint_), "")),
      names_(checkpoint_, config_),
      family_(choose_family(config_, "")),
      // As it is written in the end, in f32: Gemma's scale of embeddings is rounded to the type.
      plan_(plan_of(family_,
                    FamilyConfig(store::ModelConfig::parse(store::with_dtype(config_, DType::kF32),
                                                           config_.path())),
                    part)),
      found_(find_tensors(plan_, checkpoint_, names_)) {
  if (part == StartingPart::kDecoder) {
    open_encoder();
  } else if (part == StartingPart::kModel && !has_class_of_plan(family_)) {
    throw InputError(path, fmt::format("the encoder of family {} is no model of its own, expected "
                                       "training of encoder and decoder together ({} seq2seq)",
                                       family_.name, field("objective")));
  }
  check_bundle_sums(checkpoint_);
  const HeadDesign& head = found_.design.head;
  if (head.kind == HeadKind::kNone) return;
  for (HeadPlan& own : plan_.heads) {
    if (alike(own.design, head)) own.design.tied = head.tied;
  }
}

void StartingModel::open_encoder() {
  if (!plan_.design.source) {
    throw InputError(path(), fmt::format("family {} has no decoder that reads an encoder, expected "
                                         "an encoder–decoder (families t5 and bart)",
                                         family_.name));
  }
  auto encoder = std::make_unique<StartingModel>(path(), StartingPart::kEncoder);
  const store::TensorInfo& own = word_table_of(found_);
  const store::TensorInfo& other = word_table_of(encoder->found_);
  const bool ties = config_.flag(family_.files.tie_field).value_or(true);
  shares_words_ = own.name == other.name || ties;
  if (own.name != other.name && ties && !store::same_values(checkpoint_, own, other)) {
    throw InputError(path(), fmt::format("'{}' differs from '{}', expected one word table: "
                                         "config.json ties those of encoder and decoder",
                                         escape(own.name), escape(other.name)));
  }
  if (!shares_words_) {
    name_word_table_apart(plan_);
    name_word_table_apart(encoder->plan_);
  }
  encoder_ = std::move(encoder);
}

std::optional<HeadDesign> StartingModel::head(HeadKind kind) const {
  if (found_.design.head.kind == kind) return found_.design.head;
  for (const HeadPlan& own : plan_.heads) {
    if (own.design.kind == kind) return own.design;
  }
  if (!plan_.heads.empty() || has_one_number(kind)) return std::nullopt;
  HeadDesign words;
  words.kind = kind;
  // T5 scales what meets a tied vocabulary; its encoder alone has none.
  if (family_.name == "t5")
    words.scale = 1 / std::sqrt(static_cast<double>(plan_.design.hidden_size));
  return words;
}

const HeadPlan* StartingModel::head_plan(const HeadDesign& head) const {
  return head.kind == HeadKind::kNone ? nullptr : head_like(plan_, head);
}

bool StartingModel::writes(const Design& design) const {
  if (design.head.kind != HeadKind::kNone && (plan_.headless || head_plan(design.head) == nullptr))
    return false;
  // Its config.json says which head there is.
  const HeadKind found = found_.design.head.kind;
  if (family_.name == "masque" && found != HeadKind::kNone && found != design.head.kind)
    return false;
  Design own = plan_.design;
  own.head = design.head;
  own.mask_token_id = design.mask_token_id;
  return same_design(own, design);
}

namespace {

/// Whether `other` has biases, those of heads left out, of matrices that have none in `own`.
bool adds_biases(const ModelPlan& own, const ModelPlan& other) {
  std::set<std::pair<Role, Index>> weights;
  std::set<std::pair<Role, Index>> biases;
  for (const PlacedTensor& tensor : placed_tensors(own, nullptr)) {
    for (const TensorPart& part : tensor.parts)
      (tensor.bias ? biases : weights).emplace(part.role, part.part);
  }
  for (const PlacedTensor& tensor : placed_tensors(other, nullptr)) {
    if (!tensor.bias) continue;
    for (const TensorPart& part : tensor.parts) {
      const std::pair place(part.role, part.part);
      if (weights.contains(place) && !biases.contains(place)) return true;
    }
  }
  return false;
}

}  // namespace

StartingModel::Written StartingModel::written(const Design& design,
                                              const TrainingConfig& training) const {
  if (writes(design)) {
    SavedDesign saved{design.family, with_begin_token(config_text(design), training), plan_};
    saved.plan.design.head = design.head;
    saved.plan.design.mask_token_id = design.mask_token_id;
    saved.plan.design.streams = design.streams;
    return {Writer::kFamily, std::move(saved)};
  }
  std::optional<SavedDesign> other;
  std::optional<std::string> problem;
  // What a family's config.json says, its reader may still refuse.
  const auto unread = input_error_message([&] {
    problem = usage_error_message([&] { other = model::saved_design(design, training); });
  });
  if (unread) problem = unread;
  const bool changes = can_change(plan_.design, design);
  // A design does not say which matrices have biases.
  if (!problem && !(changes && adds_biases(plan_, other->plan)))
    return {Writer::kOther, *std::move(other)};
  if (changes) {
    return {Writer::kChanged,
            {"masque", with_begin_token(changed_config(config_text(design), design), training),
             changed_plan(plan_, design)}};
  }
  throw UsageError(
      fmt::format("{}: no family's config.json can describe the model with these changes: {}",
                  escape(path()), *problem));
}

SavedDesign StartingModel::saved_design(const Design& design,
                                        const TrainingConfig& training) const {
  return written(design, training).saved;
}

bool StartingModel::leaves_classifier(const Design& design) const {
  if (found_.design.head.kind != HeadKind::kNone && design.head == found_.design.head) return false;
  return std::ranges::any_of(checkpoint_.tensors(), is_of_classifier);
}

std::string StartingModel::config_text(const Design& design) const {
  std::string text = store::with_dtype(config_, DType::kF32);
  const auto set = [&](const char* name, const std::string& value) {
    text = set_json_member(text, {name}, value);
  };
  if (config_.model_type().empty()) set("model_type", quote_json(family_.model_types.front()));
  const HeadDesign& head = design.head;
  const std::string type = config_.string("base_model_type").value_or(config_.model_type());
  const Family* named = find_family(type);
  const std::string name = class_name(named != nullptr ? *named : family_, type, head.kind);
  const bool leaves = leaves_classifier(design);
  if ((leaves || head.kind != found_.design.head.kind) && !name.empty())
    set("architectures", json_array(std::array{name}));
  if (leaves) {
    for (const char* key : {"id2label", "label2id", "problem_type", "classifier_mask"})
      text = erase_json_member(text, {key});
    // Next to head.dense it is ModernBERT's own, whose class reads it.
    if (names_.find("head.dense.weight") == nullptr)
      text = erase_json_member(text, {"classifier_pooling"});
  }
  const bool has_words = head.kind == HeadKind::kMasked || head.kind == HeadKind::kCausal;
  const std::string tie(named != nullptr ? named->files.tie_field : family_.files.tie_field);
  // Of a decoder whose file has another matrix nothing is stated, as before: by what is stated its
  // states are scaled.
  if (!plan_.design.source && has_words && !head.tied && config_.flag(tie).value_or(true))
    set(tie.c_str(), "false");
  return text;
}

/// Whether the checkpoint has the same values under both names.
bool StartingModel::is_copy(const std::string& a, const std::string& b) const {
  const store::TensorInfo* left = names_.find(a);
  const store::TensorInfo* right = names_.find(b);
  return left != nullptr && right != nullptr && store::same_values(checkpoint_, *left, *right);
}

/// All names of a tensor that the checkpoint has, the one that is read first.
std::vector<std::string> StartingModel::names_in_file(const PlacedTensor& tensor) const {
  std::vector<std::string> found;
  for_spellings(tensor.names, [&](std::string_view spelling) {
    const bool based = spelling.starts_with('~');
    const std::string bare(based ? spelling.substr(1) : spelling);
    std::vector<std::string> all = {bare};
    if (based) all.insert(all.begin(), plan_.prefix + bare);
    for (const std::string& name : all) {
      const std::string old = old_norm_name(name);
      // TensorFlow's names become those of Hugging Face anyway.
      const bool is_new = names_.find(name) != nullptr;
      if (!is_new && (old.empty() || names_.find(old) == nullptr)) continue;
      const std::string& own = is_new || names_.tf() != nullptr ? name : old;
      found.push_back(own);
      return;
    }
  });
  return found;
}

/// Rows that a plan has others in the place of, and heads that would be found before its own.
std::vector<TensorRow> StartingModel::replaced_rows(const ModelPlan& plan) const {
  std::vector<TensorRow> rows;
  for (const TensorRow& row : plan_.rows) {
    const bool kept =
        std::ranges::any_of(plan.rows, [&](const TensorRow& one) { return one.name == row.name; });
    if (!kept) rows.push_back(row);
  }
  const HeadPlan* own = head_plan(plan.design.head);
  for (const HeadPlan& head : plan_.heads) {
    if (&head == own) break;
    rows.insert(rows.end(), head.rows.begin(), head.rows.end());
    if (!head.decoder.empty()) rows.push_back({head.decoder, {Role::kDecoder}, Parts::kTensor});
  }
  return rows;
}

void StartingModel::add_unused(const ModelPlan& plan, bool same_head,
                               std::vector<store::OutputTensor>& tensors) const {
  if (names_.tf() != nullptr) {
    // TensorFlow's files lack what transformers saves and expects.
    for (const ComputedTensor& tensor : plan.computed) {
      const std::string name = with_base(plan, tensor.name);
      tensors.push_back(started_tensor({.name = name, .dtype = DType::kF32, .shape = tensor.shape},
                                       tensor.start, RandomStream(0, name)));
    }
    return;
  }
  // A file without a head may lack the prefix of the base model, which it has next to a head.
  const auto has_prefix = [&](const store::TensorInfo& info) {
    return info.name.starts_with(plan_.prefix);
  };
  const bool leaves = leaves_classifier(plan.design);
  const bool bare = !same_head && std::ranges::none_of(checkpoint_.tensors(), has_prefix);
  const std::string prefix = bare ? plan_.prefix : "";
  std::set<std::string> known;
  for (const store::OutputTensor& tensor : tensors) {
    known.insert(tensor.info.name);
    known.insert(old_norm_name(tensor.info.name));
  }
  for (const TensorRow& row : replaced_rows(plan)) {
    for (const PlacedTensor& placed : place_row(plan_.design, row)) {
      for (const std::string& name : names_in_file(placed)) known.insert(name);
    }
  }
  for (const store::TensorInfo& info : checkpoint_.tensors()) {
    const std::string name = prefix + info.name;
    if (known.contains(name) || (leaves && is_of_classifier(info))) continue;
    store::OutputTensor& copy = tensors.emplace_back();
    copy.info = info;
    copy.info.name = name;
    copy.source = store::source_of(checkpoint_.files()[info.file].file, info);
  }
}

void StartingModel::add_tensors(const ModelPlan& plan, const ModelWeights<float>& weights,
                                bool same_head, std::vector<store::OutputTensor>& tensors) const {
  std::vector<NamedTensor> named = named_tensors(plan, weights);
  const HeadPlan* head = same_head ? head_plan(plan.design.head) : nullptr;
  if (head != nullptr && plan.design.head.tied && !head->decoder.empty()) {
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
  for (const store::OutputTensor& tensor : tensors) written.insert(tensor.info.name);
  for (NamedTensor& tensor : named) {
    std::vector<std::string> names;
    if (same_head) names = names_in_file(tensor.placed);
    // What has other values under another name is no part of the model.
    std::erase_if(names, [&](const std::string& name) {
      return name != names.front() && !is_copy(name, names.front());
    });
    if (names.empty()) names = {tensor.name};
    for (const std::string& name : names) {
      if (!written.insert(name).second) continue;
      NamedTensor one = tensor;
      one.name = name;
      tensors.push_back(output_tensor(std::move(one)));
    }
  }
}

ModelFiles StartingModel::files(const Design& design, const ModelWeights<float>& weights,
                                const TrainingConfig& training, bool unused,
                                const ModelWeights<float>* encoder) const {
  MASQUE_CHECK((encoder != nullptr) == (encoder_ != nullptr));
  const Written found = written(design, training);
  if (found.writer == Writer::kOther) return model_files(found.saved, weights);
  const ModelPlan& plan = found.saved.plan;
  const bool same_head = design.head == found_.design.head;
  ModelFiles files;
  files.weights.name = "model.safetensors";
  files.weights.metadata = {{"format", "pt"}};
  std::vector<store::OutputTensor>& tensors = files.weights.tensors;
  add_tensors(plan, weights, same_head, tensors);
  if (encoder != nullptr) encoder_->add_tensors(encoder_->plan_, *encoder, true, tensors);
  if (unused) add_unused(plan, same_head, tensors);
  std::ranges::sort(tensors, {}, [](const store::OutputTensor& t) { return t.info.name; });
  const std::string& text = found.saved.config;
  files.config = {"config.json", store::Literal{text}, text.size(), 0644};
  return files;
}

}  // namespace masque::model
