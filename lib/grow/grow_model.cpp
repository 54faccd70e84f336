#include "grow/grow_model.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "grow/grown_config.hpp"
#include "grow/grown_elements.hpp"
#include "grow/grown_moments.hpp"
#include "grow/sameness.hpp"
#include "grow/spelled_name.hpp"
#include "model/checkpoint/load.hpp"
#include "model/checkpoint/training_state.hpp"
#include "model/known_keys.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/edit/checkpoint_edit.hpp"

namespace masque::grow {

namespace {

using model::Role;

store::ModelConfig config_of_folder(const store::Checkpoint& checkpoint) {
  if (!checkpoint.is_folder())
    throw InputError(checkpoint.path(), "a file, expected a folder with config.json");
  return store::need_config(checkpoint);
}

bool is_of_layers(const model::TensorRow& row) {
  return !row.detector && row.name.find("{l}") != std::string::npos;
}

/// Whether noise may go on it.
bool is_matrix_of_layers(const model::PlacedTensor& tensor) {
  return !tensor.vector && !tensor.bias && tensor.parts.front().role <= Role::kGatedInput;
}

std::vector<LayerCopy> same_layers(const model::Design& design) {
  std::vector<LayerCopy> copies;
  for (Index i = 0; i < design.num_hidden_layers; ++i) copies.push_back({i, false});
  return copies;
}

}  // namespace

class ModelGrowth::Plan {
 public:
  Plan(const std::string& in, const GrowthRequest& request);

  const GrowthReport& report() const { return report_; }

  std::vector<std::string> write(const std::string& out, store::WriteOptions options) {
    options.input = checkpoint_.path();
    for (const model::TensorPlan& tensor : found_.tensors)
      store::check_finite(checkpoint_, *tensor.info, options.threads);
    return surgery::write_edit(edit_, out, std::move(options));
  }

 private:
  bool wider() const { return request_.factor != 1; }
  bool deeper() const { return request_.layers > 0; }

  model::ModelPlan change_config();
  model::ModelPlan planned_again() const;
  void check_planned(const model::ModelPlan& larger);
  void grow_layers(const model::ModelPlan& larger);
  void grow_rest();
  void grow_unused(const store::TensorInfo& tensor);
  void set_moments();
  void set(const std::string& name, const std::string& neighbour, GrownTensor tensor);
  TensorGrowth growth_of(const model::TensorPlan& tensor) const;
  GrownTensor grown(const model::TensorPlan& tensor, const std::string& name, bool added) const;
  const model::TensorPlan* with_role(Role role, Index layer, bool bias) const;
  bool has_skipped() const;
  bool is_skipped(const store::TensorInfo& tensor) const;

  GrowthRequest request_;
  store::Checkpoint checkpoint_;
  store::ModelConfig config_;
  store::NamedTensors names_;
  const model::Family& family_;
  model::ModelPlan plan_;
  model::LoadPlan found_;
  surgery::CheckpointEdit edit_;
  WidthSettings settings_;
  std::vector<LayerCopy> layers_;  ///< of the larger model
  std::set<std::string> known_;    ///< names of the file's tensors that are settled
  std::uint64_t skipped_ = 0;      ///< tensors of a part that does not grow
  std::optional<model::ModelPlan> larger_;
  std::optional<GrownMoments> moments_;
  GrowthReport report_;
};

ModelGrowth::Plan::Plan(const std::string& in, const GrowthRequest& request)
    : request_(request),
      checkpoint_(store::open_checkpoint(in)),
      config_(config_of_folder(checkpoint_)),
      names_(checkpoint_, config_),
      family_(model::choose_family(config_, "")),
      plan_(model::read_plan(family_, model::FamilyConfig(config_))),
      found_(model::find_tensors(plan_, checkpoint_, names_)),
      edit_(checkpoint_) {
  store::check_whole_gguf(checkpoint_);
  const model::Design& before = found_.design;
  settings_ = {before, wider() ? wider_design(before, request.factor, request.width) : before,
               request.width, request.seed};
  layers_ = deeper() ? deeper_layers(before, request.layers, request.depth) : same_layers(before);
  larger_ = change_config();
  moments_.emplace(checkpoint_.folder(), plan_, *larger_, settings_);
  if (deeper()) grow_layers(*larger_);
  grow_rest();
  for (const store::TensorInfo& tensor : checkpoint_.tensors())
    if (!known_.contains(tensor.name)) grow_unused(tensor);
  if (request.noise > 0 && !wider() && model::count_layers(before) != before.num_hidden_layers)
    throw UsageError("noise on added layers is not supported where layers share their weights");
  set_moments();
  if (skipped_ > 0)
    report_.notes.push_back(
        fmt::format("{} tensors of {} are ignored", skipped_, plan_.skipped.front().what));
  for (const std::string& note : plan_.design.notes) report_.notes.push_back(note);
  report_.before = settings_.before;
  report_.after = settings_.after;
  judge(request_, found_, report_);
}

/// Whether a tensor is of a part that the family leaves out: T5's decoder.
bool ModelGrowth::Plan::is_skipped(const store::TensorInfo& tensor) const {
  return std::ranges::any_of(plan_.skipped, [&](const model::Skipped& part) {
    return tensor.name.starts_with(part.prefix);
  });
}

bool ModelGrowth::Plan::has_skipped() const {
  const std::vector<store::TensorInfo>& all = checkpoint_.tensors();
  return std::ranges::any_of(all, [&](const auto& tensor) { return is_skipped(tensor); });
}

model::ModelPlan ModelGrowth::Plan::planned_again() const {
  const auto text = edit_.file_text(store::config_name(checkpoint_.folder()));
  return family_.plan(model::FamilyConfig(store::ModelConfig::parse(text.value(), config_.path())));
}

/// The plan of the larger model, as the new config says it.
model::ModelPlan ModelGrowth::Plan::change_config() {
  if (wider()) set_widths(edit_, config_, settings_.before, request_.factor);
  if (deeper()) set_layers(edit_, config_, settings_.before, layers_, has_skipped());
  model::ModelPlan larger = planned_again();
  check_planned(larger);
  return larger;
}

/// Whether the new config says the larger model, layer by layer.
void ModelGrowth::Plan::check_planned(const model::ModelPlan& larger) {
  model::Design& after = settings_.after;
  if (deeper()) {
    after.num_hidden_layers = request_.layers;
    after.layers = larger.design.layers;
    after.variants.mask = larger.design.variants.mask;
    after.variants.position = larger.design.variants.position;
    after.normalizer = larger.design.normalizer;
    const bool shared = model::count_layers(settings_.before) != settings_.before.num_hidden_layers;
    for (std::size_t i = 0; i < std::min(layers_.size(), after.layers.size()); ++i) {
      const LayerCopy& copy = layers_[i];
      // What an added layer does with its scores changes nothing, or is another function anyway.
      if (copy.added || (!keeps_function(request_.depth) && !shared)) continue;
      model::LayerDesign expected = settings_.before.layers[static_cast<std::size_t>(copy.from)];
      if (!shared) expected.weights = static_cast<Index>(i);
      if (after.layers[i] == expected) continue;
      if (shared) {
        throw UsageError(fmt::format(
            "cannot make this model deeper: layers of family {} share several sets of weights, and "
            "layer {} would get another set; expected a model with one set",
            family_.name, i));
      }
      throw UsageError(fmt::format(
          "cannot make this model deeper: layer {} of family {} would become layer {}, which has "
          "another window or scale of scores; expected the rule zero or stack",
          copy.from, family_.name, i));
    }
  }
  model::Design expected = after;
  expected.head = larger.design.head;
  expected.notes = larger.design.notes;
  expected.missing_head = larger.design.missing_head;
  if (!same_design(larger.design, expected)) {
    throw InputError(config_.path(), fmt::format("the config of family {} cannot describe the "
                                                 "larger model: {} layers, {} × {}, {} heads of {}",
                                                 family_.name, expected.num_hidden_layers,
                                                 expected.hidden_size, expected.intermediate_size,
                                                 expected.num_attention_heads, expected.head_size));
  }
  const auto same_kind = [&](const model::HeadPlan& head) {
    return head.design.kind == found_.design.head.kind;
  };
  const auto head = std::ranges::find_if(larger.heads, same_kind);
  if (head != larger.heads.end()) after.head.scale = head->design.scale;
}

TensorGrowth ModelGrowth::Plan::growth_of(const model::TensorPlan& tensor) const {
  return grow_tensor(settings_, tensor.placed, tensor.info->name);
}

/// What a tensor under a name is made from, with noise of that name on matrices of a wider model
/// and of an added layer.
GrownTensor ModelGrowth::Plan::grown(const model::TensorPlan& tensor, const std::string& name,
                                     bool added) const {
  const model::TensorPart& part = tensor.placed.parts.front();
  const model::TensorPlan* next = request_.width == WidthRule::kAki
                                      ? with_role(part.role, part.layer + 1, tensor.placed.bias)
                                      : nullptr;
  GrownTensor made;
  made.from = tensor.info;
  made.next = next == nullptr ? nullptr : next->info;
  made.growth = growth_of(tensor);
  made.stream = RandomStream(request_.seed, name);
  if ((wider() || added) && is_matrix_of_layers(tensor.placed)) made.noise = request_.noise;
  return made;
}

const model::TensorPlan* ModelGrowth::Plan::with_role(Role role, Index layer, bool bias) const {
  const auto found = std::ranges::find_if(found_.tensors, [&](const model::TensorPlan& tensor) {
    const model::TensorPart& part = tensor.placed.parts.front();
    return !tensor.placed.detector && part.role == role && part.layer == layer &&
           tensor.placed.bias == bias;
  });
  return found == found_.tensors.end() ? nullptr : &*found;
}

/// Writes a tensor of the larger model, under a name that the file has or a new one; one that is as
/// it was stays.
void ModelGrowth::Plan::set(const std::string& name, const std::string& neighbour,
                            GrownTensor tensor) {
  const bool same = name == tensor.from->name && !tensor.constant && tensor.noise == 0 &&
                    tensor.growth.shape == tensor.from->shape && tensor.growth.scale == 1;
  if (same) {
    known_.insert(name);
    ++report_.kept;
    return;
  }
  const store::TensorInfo* there = checkpoint_.find(name);
  const DType dtype = there != nullptr ? there->dtype : tensor.from->dtype;
  Shape shape = tensor.growth.shape;
  store::Source source = grown_elements(checkpoint_, std::move(tensor), dtype);
  if (there != nullptr) {
    ++report_.grown;
    known_.insert(name);
    edit_.replace(name, std::move(shape), std::move(source));
    return;
  }
  ++report_.added;
  store::OutputTensor added;
  added.info.name = name;
  added.info.dtype = dtype;
  added.info.shape = std::move(shape);
  added.source = std::move(source);
  edit_.add(std::move(added), neighbour);
}

/// The tensors of all layers of a deeper model.
void ModelGrowth::Plan::grow_layers(const model::ModelPlan& larger) {
  std::map<std::string, const model::TensorPlan*> by_names;
  for (const model::TensorPlan& tensor : found_.tensors)
    by_names.emplace(tensor.placed.names, &tensor);
  model::Design after = settings_.after;
  after.layers = larger.design.layers;
  for (const model::TensorRow& row : plan_.rows) {
    if (!is_of_layers(row)) continue;
    std::map<std::pair<Index, bool>, const model::TensorPlan*> before;
    for (const model::PlacedTensor& tensor : model::place_row(found_.design, row))
      before[{tensor.parts.front().layer, tensor.bias}] = by_names.at(tensor.names);
    for (const model::PlacedTensor& tensor : model::place_row(after, row)) {
      const model::TensorPart& part = tensor.parts.front();
      const Index layer = part.layer;
      const auto first = std::ranges::find_if(
          before, [&](const auto& one) { return one.first.second == tensor.bias; });
      if (first == before.end()) continue;
      const LayerTensor made =
          layer_tensor(settings_.before, layers_, request_.depth, part.role, tensor.bias, layer);
      const auto same_row = before.find({made.layer, tensor.bias});
      const model::TensorPlan* from = made.role != part.role
                                          ? with_role(made.role, made.layer, tensor.bias)
                                      : same_row != before.end() ? same_row->second
                                                                 : nullptr;
      std::optional<double> constant = made.constant;
      if (from == nullptr) {
        // ModernBERT's first layer has no norm in front of attention; a copy of it elsewhere has.
        from = first->second;
        constant = tensor.bias ? 0 : 1;
      }
      const std::string name = spelled_as(*first->second, tensor, plan_.prefix, names_);
      const LayerCopy& copy = layers_[static_cast<std::size_t>(layer)];
      GrownTensor made_of = grown(*from, name, copy.added);
      made_of.constant = constant;
      // A norm that is divided for a tied vocabulary is the last one.
      if (layer + 1 < std::ssize(layers_) && model::is_norm(part.role)) {
        made_of.growth.scale = 1;
        made_of.growth.columns.share.clear();
      }
      // Of an added layer in post-norm the last norm is the one that ended the layer below.
      const bool moved = model::is_norm(part.role) && moves_norms(settings_.before, request_.depth);
      moments_->add(from->placed, tensor, constant || (copy.added && !moved));
      set(name, before.rbegin()->second->info->name, std::move(made_of));
    }
    for (const auto& [place, tensor] : before) known_.insert(tensor->info->name);
  }
}

/// Tensors of the model outside its layers, or all if it has as many as before.
void ModelGrowth::Plan::grow_rest() {
  for (const model::TensorPlan& tensor : found_.tensors) {
    if (known_.contains(tensor.info->name)) continue;
    const Role role = tensor.placed.parts.front().role;
    std::optional<double> constant;
    if (deeper() && role == Role::kConvolutionNorm) {
      constant =
          layer_tensor(settings_.before, layers_, request_.depth, role, tensor.placed.bias, 0)
              .constant;
    }
    GrownTensor made_of = grown(tensor, tensor.info->name, false);
    made_of.constant = constant;
    moments_->add(tensor.placed, tensor.placed, constant.has_value());
    set(tensor.info->name, tensor.info->name, std::move(made_of));
  }
}

/// What no part of the model reads: copies of what it reads, poolers, classifiers, buffers.
void ModelGrowth::Plan::grow_unused(const store::TensorInfo& tensor) {
  if (!is_float(tensor.dtype) || !wider()) {
    ++report_.kept;
    return;
  }
  if (is_skipped(tensor)) {
    edit_.remove(tensor.name);
    ++skipped_;
    return;
  }
  for (const model::TensorPlan& known : found_.tensors) {
    if (known.info->shape != tensor.shape || known.info->dtype != tensor.dtype ||
        !store::same_values(checkpoint_, *known.info, tensor))
      continue;
    GrownTensor copy = grown(known, known.info->name, false);
    copy.from = &tensor;
    set(tensor.name, tensor.name, std::move(copy));
    return;
  }
  const auto width = static_cast<std::uint64_t>(settings_.before.hidden_size);
  const auto wide = static_cast<std::uint64_t>(settings_.after.hidden_size);
  const bool reads = tensor.shape.size() == 2 && tensor.shape[1] == width;
  const bool pooler = tensor.name.find("pooler.") != std::string::npos;
  TensorGrowth growth;
  growth.shape = tensor.shape;
  if (reads && (pooler || tensor.shape[0] != width)) {
    growth.columns = hidden_units(settings_);
    growth.rows = pooler ? growth.columns : kept_units(static_cast<Index>(tensor.shape[0]));
    share_equally(growth.columns);
    growth.shape = {static_cast<std::uint64_t>(growth.rows.size()), wide};
  } else if (pooler && tensor.shape == Shape{width}) {
    growth.rows = kept_units(1);
    growth.columns = hidden_units(settings_);
    growth.shape = {wide};
  } else if (std::ranges::find(tensor.shape, width) != tensor.shape.end()) {
    edit_.remove(tensor.name);
    report_.notes.push_back(
        fmt::format("'{}' is ignored: the model does not use it", escape(tensor.name)));
    return;
  }
  GrownTensor made_of;
  made_of.from = &tensor;
  made_of.growth = std::move(growth);
  set(tensor.name, tensor.name, std::move(made_of));
}

/// The state of the run that made the model: of it the moments alone fit another one.
void ModelGrowth::Plan::set_moments() {
  if (!moments_->has_state()) return;
  edit_.drop_file(model::kTrainingStateName);
  report_.notes.push_back(fmt::format("{}: {}", model::kTrainingStateName, moments_->summary()));
  if (auto state = moments_->take()) edit_.set_weights(*std::move(state));
}

ModelGrowth::ModelGrowth(const std::string& in, const GrowthRequest& request)
    : plan_(std::make_unique<Plan>(in, request)) {}

ModelGrowth::~ModelGrowth() = default;

const GrowthReport& ModelGrowth::report() const { return plan_->report(); }

std::vector<std::string> ModelGrowth::write(const std::string& out, store::WriteOptions options) {
  return plan_->write(out, std::move(options));
}

}  // namespace masque::grow
