#include "grow/grow_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/thread/parallel.hpp"
#include "grow/depth_rules.hpp"
#include "grow/grown_elements.hpp"
#include "grow/larger_config.hpp"
#include "grow/width_rules.hpp"
#include "model/checkpoint/load.hpp"
#include "model/checkpoint/training_state.hpp"
#include "model/design.hpp"
#include "model/family.hpp"
#include "model/known_keys.hpp"
#include "model/role.hpp"
#include "model/weights.hpp"
#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/names/named_tensors.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/correction/correction_settings.hpp"
#include "surgery/edit/checkpoint_edit.hpp"

namespace masque::grow {

namespace {

// The name of an added layer's tensor in the spelling of the file.

/// The name of `wanted`, a tensor of another layer of the same row, as the file spells `known`:
/// with or without `prefix_of_base` ("bert."), with old names of norms, as TensorFlow has it.
/// `names` are those of the file that `known` is from.
std::string spelled_as(const model::TensorPlan& known, const model::PlacedTensor& wanted,
                       const std::string& prefix_of_base, const store::NamedTensors& names) {
  std::vector<std::string> spellings;
  model::for_spellings(wanted.names, [&](std::string_view name) { spellings.emplace_back(name); });
  std::size_t at = 0;
  std::string found;
  model::for_spellings(known.placed.names, [&](std::string_view name) {
    const std::string& own = spellings.at(at++);
    for (const std::string& prefix : {prefix_of_base, std::string()}) {
      const auto full = [&](std::string_view one) {
        return one.starts_with('~') ? prefix + std::string(one.substr(1)) : std::string(one);
      };
      for (const bool old : {false, true}) {
        const auto spelled = [&](std::string_view one) {
          return old ? model::old_norm_name(full(one)) : full(one);
        };
        const std::string before = spelled(name);
        if (!found.empty() || before.empty()) continue;
        if (names.own_name(before) == known.info->name) found = names.own_name(spelled(own));
      }
    }
  });
  MASQUE_CHECK(!found.empty());
  return found;
}

// Whether a larger model has the function of the small one, by what was done to it.

/// The largest relative error of rounding a number, in the range of normal numbers, to a type.
double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-53;
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kF8E4M3:
    case DType::kF8E4M3Fnuz: return 0x1p-4;
    default: return 0x1p-3;
  }
}

/// Whether numbers of ordinary size stay normal ones when they are divided.
bool has_wide_range(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kBF16;
}

/// Sets `sameness`, `rounded` and `unit_roundoff` of `report`, which has both designs, for a growth
/// by `request`. `found` are the tensors of the small model, whose types those of the larger one
/// have.
void judge(const GrowthRequest& request, const model::LoadPlan& found, GrowthReport& report) {
  const bool wider = request.factor != 1;
  const bool deeper = request.layers > 0;
  bool wide_range = true;
  for (const model::TensorPlan& tensor : found.tensors) {
    report.unit_roundoff = std::max(report.unit_roundoff, unit_roundoff(tensor.info->dtype));
    wide_range = wide_range && has_wide_range(tensor.info->dtype);
  }
  const bool whole = request.factor == std::floor(request.factor);
  const bool halves = whole && std::has_single_bit(static_cast<std::uint64_t>(request.factor));
  const bool exact = halves && wide_range && request.width != WidthRule::kUnequal &&
                     report.before.head.scale == report.after.head.scale;
  report.rounded = wider && !exact;
  // The strongest change counts.
  if (report.rounded) report.sameness = Sameness::kRounded;
  if (deeper && moves_norms(report.before, request.depth)) report.sameness = Sameness::kEpsilon;
  const bool other_width = wider && (!whole || request.width == WidthRule::kAki);
  const bool other_depth = deeper && !keeps_function(request.depth);
  const bool noisy = request.noise > 0 && wider;
  if (other_width || other_depth || noisy) report.sameness = Sameness::kOther;
}

// The optimizer's moments of a larger model, from the state of the run that made the small one.
//
// A model of exact copies has the small model's loss, so the gradients of all copies of a weight
// sum to the gradient of that weight, each times the share of it that the copy has; and copies have
// equal gradients. Of n copies w' = s w each has the gradient g' = g / (n s). The first moment, a
// mean of gradients, grows as they do, and the second, a mean of squares, by the square of that.

/// Collects the moments of a larger model, tensor by tensor. With other rules than exact copies
/// they grow as if all copies of a weight had equal gradients.
class GrownMoments {
 public:
  /// `small` is the small model, whose tensors are `found`; its folder may have a state, and what
  /// this does not have is left out. The plans of both models, `before` and `after`, must outlive
  /// it. `settings` are the growth's. Throws InputError for a state that cannot be read or was
  /// changed since it was written, and Interrupted.
  GrownMoments(const store::Checkpoint& small, const model::LoadPlan& found,
               const model::ModelPlan& before, const model::ModelPlan& after,
               const WidthSettings& settings);

  /// The moments of all places of a tensor `to` of the larger model, which is made from `from`.
  /// anew  what the tensor holds is not what training has made of it: an added layer, or constants.
  /// Its first moment begins at 0; the second one stays, so that the first steps are no larger
  /// than others. Throws InputError for moments of other values than the small model has: it was
  /// changed since.
  void add(const model::PlacedTensor& from, const model::PlacedTensor& to, bool anew);

  /// A note on what is kept of the state and what is left out. Requires has_state().
  std::string summary() const;

  /// The state to write: moments without values, the updates that they have had, and what the run
  /// has recorded of itself. Nothing if there are no moments. This object must outlive the writing.
  /// To be called once, last.
  std::optional<store::OutputWeights> take();

  /// Whether the folder has a state.
  bool has_state() const { return state_.has_value(); }

 private:
  void check_values(const model::PlacedTensor& of, const model::TensorPart& part,
                    const std::string& name);

  const model::ModelPlan& before_;
  const model::ModelPlan& after_;
  WidthSettings settings_;
  std::string path_;  ///< of the state
  std::optional<store::Checkpoint> state_;
  model::ModelWeights<float> values_;   ///< of the small model; with a state only
  std::set<std::string> used_, added_;  ///< parameters of both models
  store::OutputWeights weights_;
};

/// Gives each of n copies that have the share s of a weight the share 1 / (n s) of its gradient.
void share_gradients(UnitCopies& units) {
  std::map<Index, double> copies;
  for (const Index from : units.from) ++copies[from];
  if (units.share.empty()) units.share.assign(units.from.size(), 1);
  for (std::size_t i = 0; i < units.from.size(); ++i)
    units.share[i] = 1 / (copies[units.from[i]] * units.share[i]);
}

/// How squares of gradients grow where gradients grow so.
TensorGrowth squared(TensorGrowth growth) {
  for (UnitCopies* units : {&growth.rows, &growth.columns}) {
    for (double& share : units->share) share *= share;
  }
  growth.scale *= growth.scale;
  return growth;
}

/// How moments of one place grow; `info` is the tensor that has them, as (rows, columns).
TensorGrowth moments_growth(WidthSettings settings, const model::PlacedTensor& of,
                            const model::TensorPart& part, const store::TensorInfo& info) {
  // Unequal shares of a weight say nothing of its gradients, which depend on what reads its
  // outputs.
  if (settings.rule == WidthRule::kUnequal) settings.rule = WidthRule::kEqual;
  model::PlacedTensor one;
  one.shape = info.shape;
  one.bias = of.bias;
  one.vector = of.vector;
  one.rows = static_cast<Index>(info.shape[0]);
  one.columns = static_cast<Index>(info.shape[1]);
  one.parts = {part};
  TensorGrowth growth = grow_tensor(settings, one, info.name);
  for (UnitCopies* units : {&growth.rows, &growth.columns}) {
    units->next = {};
    share_gradients(*units);
  }
  growth.scale = 1 / growth.scale;
  growth.shape = {static_cast<std::uint64_t>(growth.rows.size()),
                  static_cast<std::uint64_t>(growth.columns.size())};
  return growth;
}

GrownMoments::GrownMoments(const store::Checkpoint& small, const model::LoadPlan& found,
                           const model::ModelPlan& before, const model::ModelPlan& after,
                           const WidthSettings& settings)
    : before_(before),
      after_(after),
      settings_(settings),
      path_(join(small.folder(), model::kTrainingStateName)) {
  if (!exists(path_)) return;
  state_ = store::open_checkpoint(path_);
  model::check_state(*state_, path_);
  values_ = model::read_tensors<float>(found, small);
}

void GrownMoments::check_values(const model::PlacedTensor& of, const model::TensorPart& part,
                                const std::string& name) {
  const store::TensorInfo* tensor =
      state_->find(model::state_tensor_name(model::kStateValue, name));
  const std::span<const float> now =
      model::weight_of(values_, part.role, of.bias, part.layer, part.part).span();
  // ckpt-grow leaves no values.
  if (tensor == nullptr || tensor->dtype != DType::kF32 || tensor->elements() != now.size()) return;
  std::vector<float> before(now.size());
  state_->read(*tensor, 0, std::as_writable_bytes(std::span(before)));
  if (model::are_values_of_state(before, now)) return;
  throw InputError(path_, fmt::format("the moments belong to other values of '{}' than the model "
                                      "has: it was changed since; delete this file",
                                      escape(name)));
}

void GrownMoments::add(const model::PlacedTensor& from, const model::PlacedTensor& to, bool anew) {
  if (!state_ || from.detector) return;
  for (std::size_t k = 0; k < std::min(from.parts.size(), to.parts.size()); ++k) {
    const std::string name = parameter_name(before_, from, from.parts[k]);
    const std::string larger = parameter_name(after_, to, to.parts[k]);
    const model::RoleShape shape = parameter_shape(settings_.before, from, from.parts[k]);
    const Shape expected{static_cast<std::uint64_t>(shape.rows),
                         static_cast<std::uint64_t>(shape.columns)};
    const auto find = [&](std::string_view what) {
      const store::TensorInfo* info = state_->find(model::state_tensor_name(what, name));
      return info != nullptr && is_float(info->dtype) && info->shape == expected ? info : nullptr;
    };
    const store::TensorInfo* updates =
        state_->find(model::state_tensor_name(model::kStateUpdates, name));
    const store::TensorInfo* first = find(model::kStateFirst);
    const store::TensorInfo* second = find(model::kStateSecond);
    if (updates == nullptr || first == nullptr || second == nullptr ||
        !added_.insert(larger).second)
      continue;
    if (used_.insert(name).second) check_values(from, from.parts[k], name);
    const TensorGrowth growth = moments_growth(settings_, from, from.parts[k], *first);
    const auto put = [&](std::string_view what, GrownTensor tensor) {
      store::OutputTensor out;
      out.info.name = model::state_tensor_name(what, larger);
      out.info.dtype = DType::kF32;
      out.info.shape = tensor.growth.shape;
      out.source = grown_elements(*state_, std::move(tensor), DType::kF32);
      weights_.tensors.push_back(std::move(out));
    };
    GrownTensor of_first{.from = first, .growth = growth};
    if (anew) of_first.constant = 0;
    put(model::kStateFirst, std::move(of_first));
    put(model::kStateSecond, {.from = second, .growth = squared(growth)});
    store::OutputTensor number;
    number.info = *updates;
    number.info.name = model::state_tensor_name(model::kStateUpdates, larger);
    number.source = store::source_of(state_->files().front().file, *updates);
    weights_.tensors.push_back(std::move(number));
  }
}

std::string GrownMoments::summary() const {
  std::size_t all = 0;
  for (const store::TensorInfo& tensor : state_->tensors())
    if (tensor.name.starts_with(model::state_tensor_name(model::kStateFirst, ""))) ++all;
  if (added_.empty()) return "no moments of this model: left out";
  std::string text = fmt::format("the optimizer's moments of {} parameters", added_.size());
  const std::size_t others = all - std::min(all, used_.size());
  if (others > 0) text += fmt::format("; those of {} others are left out", others);
  return text;
}

std::optional<store::OutputWeights> GrownMoments::take() {
  if (weights_.tensors.empty()) return std::nullopt;
  weights_.name = model::kTrainingStateName;
  std::ranges::sort(weights_.tensors, {}, [](const auto& tensor) { return tensor.info.name; });
  weights_.metadata = model::run_facts(*state_, surgery::TrainingRecord::facts());
  model::add_state_digests(weights_);
  return std::move(weights_);
}

// The growth.

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
  bool reads_layer_types() const;
  const model::Skipped* skipped_part(const store::TensorInfo& tensor) const;

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
  store::check_one_gguf(checkpoint_);
  if (!model::has_class_of_plan(family_)) {
    throw UsageError(fmt::format(
        "cannot make this model {}: its decoder reads the states of its encoder, which is no model "
        "of its own",
        wider() ? "wider" : "deeper"));
  }
  const model::Design& before = found_.design;
  settings_ = {before, wider() ? wider_design(before, request.factor, request.width) : before,
               request.width, request.seed};
  layers_ = deeper() ? deeper_layers(before, request.layers, request.depth) : same_layers(before);
  larger_ = change_config();
  moments_.emplace(checkpoint_, found_, plan_, *larger_, settings_);
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

/// The part of `tensor` that the family leaves out, T5's decoder; nullptr: none.
const model::Skipped* ModelGrowth::Plan::skipped_part(const store::TensorInfo& tensor) const {
  const auto found = std::ranges::find_if(plan_.skipped, [&](const model::Skipped& part) {
    return tensor.name.starts_with(part.prefix);
  });
  return found == plan_.skipped.end() ? nullptr : &*found;
}

bool ModelGrowth::Plan::has_skipped() const {
  return std::ranges::any_of(checkpoint_.tensors(), [&](const store::TensorInfo& tensor) {
    return skipped_part(tensor) != nullptr;
  });
}

/// Whether the family asks for layer_types.
bool ModelGrowth::Plan::reads_layer_types() const {
  const std::string key = "layer_types";
  const std::string text = set_json_member(config_.text(), {key}, "[]");
  const model::FamilyConfig config(store::ModelConfig::parse(text, config_.path()));
  // An empty list is refused by those that read it.
  return input_error_message([&] { family_.plan(config); }).has_value();
}

model::ModelPlan ModelGrowth::Plan::planned_again() const {
  const auto text = edit_.file_text(store::config_name(checkpoint_.folder()));
  return family_.plan(model::FamilyConfig(store::ModelConfig::parse(text.value(), config_.path())));
}

/// The plan of the larger model, as the new config says it.
model::ModelPlan ModelGrowth::Plan::change_config() {
  if (wider()) set_widths(edit_, config_, settings_.before, request_.factor);
  if (deeper())
    set_layers(edit_, config_, settings_.before, layers_, {has_skipped(), reads_layer_types()});
  model::ModelPlan larger = planned_again();
  check_planned(larger);
  return larger;
}

/// Whether the new config says the larger model, layer by layer.
void ModelGrowth::Plan::check_planned(const model::ModelPlan& larger) {
  model::Design& after = settings_.after;
  if (larger.design.embedding_scale != after.embedding_scale) {
    throw UsageError(
        fmt::format("cannot make this model wider: family {} multiplies embeddings by the root of "
                    "hidden_size, which the width changes",
                    family_.name));
  }
  if (larger.design.num_key_value_heads != after.num_key_value_heads) {
    throw UsageError(
        fmt::format("cannot make this model wider: the config of family {} says {} "
                    "heads of keys and values, {} would be needed",
                    family_.name, larger.design.num_key_value_heads, after.num_key_value_heads));
  }
  if (deeper()) {
    after.num_hidden_layers = request_.layers;
    after.layers = larger.design.layers;
    after.variants.masks = larger.design.variants.masks;
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
        constant = tensor.bias ? 0 : 1 - settings_.before.norm.weight_offset;
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
    for (const auto& [place, tensor] : before) {
      // The layer that has its number now has no such tensor.
      if (known_.insert(tensor->info->name).second) edit_.remove(tensor->info->name);
    }
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
  const model::Skipped* part = skipped_part(tensor);
  if (part != nullptr && (wider() || part->by_layer)) {
    edit_.remove(tensor.name);
    ++skipped_;
    return;
  }
  if (!is_float(tensor.dtype) || !wider()) {
    ++report_.kept;
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

/// The state of the run that made the model: of it the moments alone fit another one, and what it
/// says of the run stays true.
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
