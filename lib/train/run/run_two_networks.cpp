// What a run trains of an objective of two networks: ELECTRA's, those of masked autoencoding, and a
// model with its detector.
#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "train/loss/correction_loss.hpp"
#include "train/loss/mae_loss.hpp"
#include "train/loss/shared_tables.hpp"
#include "train/run/run.hpp"
#include "train/run/starting_design.hpp"

namespace masque::train {

using model::ModelWeights;
using model::Role;

namespace {

/// Whether both have the table with the same bits.
bool same_table(Role role, ModelWeights<float> a, ModelWeights<float> b) {
  const MatrixView<const float> left = model::weight_of(a, role, false, 0, 0).view;
  const MatrixView<const float> right = model::weight_of(b, role, false, 0, 0).view;
  if (left.rows != right.rows || left.columns != right.columns) return false;
  const std::size_t bytes = static_cast<std::size_t>(left.columns) * sizeof(float);
  for (Index i = 0; i < left.rows; ++i) {
    if (std::memcmp(left.row(i), right.row(i), bytes) != 0) return false;
  }
  return true;
}

/// The tables that two checkpoints would share, but for their values.
std::vector<Role> different_tables(const ElectraModel& model, const ModelWeights<float>& second,
                                   const ModelWeights<float>& generator) {
  std::vector<Role> different;
  const auto has = [](ModelWeights<float> weights, Role role) {
    return static_cast<bool>(model::weight_of(weights, role, false, 0, 0));
  };
  for (const Role role : kSharedTables) {
    if (!has(second, role) || !has(generator, role)) continue;
    if (!shares_table(role, model.second, model.generator)) continue;
    if (!same_table(role, second, generator)) different.push_back(role);
  }
  return different;
}

}  // namespace

std::string TrainingRun::digest_of(const ParameterMap& map) {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  map.for_each([&](Role, bool, Index, Index, Index parameter) {
    const MatrixView<float> value = parameters_.value(parameter);
    const auto size = static_cast<std::size_t>(parameters_[parameter].size());
    hasher->add(std::as_bytes(std::span<const float>(value.data, size)));
  });
  return hasher->digest();
}

model::Design TrainingRun::made_generator(const ElectraVariant& variant) const {
  const ObjectiveOptions& requested = options_.requested;
  if (!options_.init_generator)
    return generator_design(variant, options_.design, options_.generator_size, requested, design_);
  const model::StartingModel& start = *options_.init_generator;
  model::Design design = starting_design(start);
  if ((start.design().streams == model::Streams::kTowers) != variant.energy) {
    throw UsageError(fmt::format("{} {} with {} {}: the generator has {}, expected {}",
                                 field("objective"), variant.name, field("init_generator"),
                                 start.path(), variant.energy ? "one tower" : "two towers",
                                 variant.energy ? "two" : "one"));
  }
  adapt_starting_design(
      start, [&](model::Design& own) { adapt_generator(variant, requested, own); }, design);
  if (design.vocab_size != design_.vocab_size) {
    throw UsageError(fmt::format("{}: {} has a vocabulary of {}, expected {} as in {}",
                                 field("init_generator"), start.path(), design.vocab_size,
                                 design_.vocab_size, options_.init->path()));
  }
  check_length(corpus_, design.max_position_embeddings, start.path());
  check_dropout(design);
  return design;
}

/// Adds the parameters of a model with a checkpoint, with their values at the start.
void TrainingRun::start_electra(ElectraModel& model) {
  const bool shared = options_.switch_step == 0;
  model.apart = tables_apart(options_.shared_tables);
  std::vector<Role> different;
  const ModelWeights<float> weights =
      options_.init ? starting_weights(*options_.init, model.second) : ModelWeights<float>();
  ModelWeights<float> of_generator;
  if (options_.init) model.second_plan = options_.init->plan(model.second);
  if (options_.init_generator) {
    model.generator_plan = options_.init_generator->plan(model.generator);
    of_generator = starting_weights(*options_.init_generator, model.generator);
    if (shared) different = different_tables(model, weights, of_generator);
    std::erase_if(different, [&](Role role) {
      return std::ranges::find(model.apart, role) != model.apart.end();
    });
    model.apart.insert(model.apart.end(), different.begin(), different.end());
  }
  add_electra(model, shared, parameters_);
  const StartOptions start{.seed = options_.trainer.seed,
                           .initializer_range = options_.initializer_range,
                           .residual_gain = options_.init ? 0 : residual_gain(options_.design)};
  initialize_parameters(model.generator, model.generator_map, start, parameters_);
  initialize_parameters(model.second, model.second_map, start, parameters_);
  if (!options_.init) return;
  new_tensors_ = copy_weights(weights, model.second_map, parameters_);
  for (const Index own : {model.gate.bias, model.gate.weight, model.baseline}) {
    if (own != ParameterMap::kNone) new_tensors_.push_back(parameters_[own].name);
  }
  if (!options_.init_generator) {
    start_notes_.emplace_back("generator: initialized");
  } else {
    const auto names = copy_weights(of_generator, model.generator_map, parameters_);
    new_tensors_.insert(new_tensors_.end(), names.begin(), names.end());
    for (const Role role : different) {
      start_notes_.push_back(fmt::format("{}: differs from the model's, not shared",
                                         parameters_[model.generator_map.weight(role)].name));
    }
    generator_digest_ = digest_of(model.generator_map);
  }
  start_digest_ = digest_of(model.second_map);
}

ElectraLossOptions TrainingRun::electra_options(const ElectraVariant& variant) const {
  const ObjectiveOptions& requested = options_.requested;
  ElectraLossOptions electra;
  electra.selection.selection.rate = requested.mlm.selection.rate;
  electra.selection.selection.rate_high = requested.mlm.selection.rate_high;
  electra.selection.drop = requested.drop;
  electra.selection.seed = requested.seed;
  electra.selection.tokens = requested.tokens;
  electra.weight = options_.discriminator_weight.value_or(variant.weight);
  electra.switch_step = options_.switch_step;
  electra.hands_over = !options_.init;
  electra.precision = options_.precision;
  electra.chunk_rows = options_.chunk_rows;
  electra.recompute = options_.recompute;
  electra.pairs = requested.pairs;
  electra.diversity = options_.diversity;
  return electra;
}

void TrainingRun::make_two(const ElectraVariant& variant) {
  if (options_.init_generator && !options_.init)
    throw UsageError(fmt::format("{}: needs {}", field("init_generator"), field("init")));
  adapt_design([&](model::Design& design) { adapt_electra(variant, options_.requested, design); });
  check_towers();
  ElectraModel& model = electra_.emplace();
  model.variant = &variant;
  model.second = design_;
  model.adversarial = options_.adversarial;
  model.generator = made_generator(variant);
  start_electra(model);
  map_ = model.second_map;
  loss_ = std::make_unique<ElectraLoss<float>>(electra_options(variant), model, parameters_);
}

void TrainingRun::make_mae() {
  if (options_.diversity)
    throw UsageError(
        fmt::format("{} cannot be combined with the objective mae, which has two networks",
                    field("diversity")));
  const ObjectiveOptions& requested = options_.requested;
  adapt_design([&](model::Design& design) { adapt_mae(requested, design); });
  check_towers();
  const DesignRecipe recipe =
      decoder_recipe(options_.design, options_.decoder_size, options_.decoder_layers);
  MaeModel& model = mae_.emplace();
  model.encoder = design_;
  if (options_.init) model.encoder_plan = options_.init->plan(design_);
  model.decoder = decoder_design(recipe, requested, design_);
  add_mae(model, parameters_);
  map_ = model.encoder_map;
  StartOptions start{.seed = options_.trainer.seed,
                     .initializer_range = options_.initializer_range,
                     .residual_gain = residual_gain(recipe)};
  initialize_parameters(model.decoder, model.decoder_map, start, parameters_);
  start.residual_gain = residual_gain(options_.design);
  initialize_parameters(model.encoder, model.encoder_map, start, parameters_);
  if (options_.init) {
    new_tensors_ = copy_weights(starting_weights(*options_.init, design_), map_, parameters_);
    start_notes_.emplace_back("decoder: initialized");
    start_digest_ = digest_of(map_);
  }
  auto loss = std::make_unique<MaeLoss<float>>(requested, model, parameters_, options_.precision);
  loss->chunk_rows = options_.chunk_rows;
  loss->set_recompute(options_.recompute);
  loss_ = std::move(loss);
}

void TrainingRun::make_correction() {
  if (options_.diversity)
    throw UsageError(
        fmt::format("{} cannot be combined with the objective correct, which has two networks",
                    field("diversity")));
  const bool had_one = design_.variants.detector.has_value();
  if (had_one && (options_.detector_size || options_.detector_layers)) {
    throw UsageError(
        fmt::format("{}: {} already has a detector; remove the option",
                    field(options_.detector_size ? "detector_size" : "detector_layers"),
                    options_.init->path()));
  }
  const model::DetectorDesign detector =
      detector_sizes(design_, options_.design, options_.detector_size.value_or(0.5),
                     options_.detector_layers.value_or(1));
  adapt_design(
      [&](model::Design& design) { adapt_correction(options_.requested, detector, design); });
  start_network();
  if (options_.init && !had_one) start_notes_.emplace_back("detector: initialized");
  auto loss = std::make_unique<CorrectionLoss<float>>(
      design_, map_, parameters_, options_.precision, options_.correction_weight);
  loss->chunk_rows = options_.chunk_rows;
  loss->set_recompute(options_.recompute);
  loss_ = std::move(loss);
}

}  // namespace masque::train
