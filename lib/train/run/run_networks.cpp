// What a run trains: the network of an objective, or the two of ELECTRA, masked autoencoding and
// correction.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/name_table.hpp"
#include "base/thread/parallel.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"
#include "nn/von_mises_fisher.hpp"
#include "train/loss/correction_loss.hpp"
#include "train/loss/mae_loss.hpp"
#include "train/loss/step_loss.hpp"
#include "train/run/kept_files.hpp"
#include "train/run/mask_check.hpp"
#include "train/run/residual_start.hpp"
#include "train/run/run.hpp"
#include "train/run/starting_design.hpp"

namespace masque::train {

using model::ModelWeights;
using model::Role;

namespace {

/// `check`, check_length() or check_evaluated_length(), of `corpus` for the model of `path`, which
/// has `design`.
void check_trained_length(const Corpus& corpus, const model::Design& design,
                          const std::string& path,
                          void (*check)(const Corpus&, Index, std::string_view)) {
  check(corpus, model::longest_trained(design), path + std::string(model::trained_part(design)));
}

// Tables of two checkpoints that are the same.

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

/// The masks of `design` in the mask language.
std::string mask_text(const model::Design& design) {
  return design.variants.masks.empty() ? std::string(model::default_mask_name(design.mask))
                                       : layers_text(design.variants.masks);
}

std::string_view latent_objective() {
  const auto all = objectives();
  const auto found =
      std::ranges::find_if(all, [](const ObjectiveKind* kind) { return kind->traits.latent; });
  return (*found)->name;
}

}  // namespace

bool has_two_networks(std::string_view objective) {
  return objective == kMae || objective == kCorrect || find_electra(objective) != nullptr;
}

std::vector<NamedObjective> all_objectives() {
  std::map<std::string_view, const ObjectiveTraits*> sorted{{kMae, &mae_traits()},
                                                            {kCorrect, &correction_traits()}};
  for (const ObjectiveKind* kind : objectives()) sorted.emplace(kind->name, &kind->traits);
  for (const ElectraVariant& variant : electra_variants())
    sorted.emplace(variant.name, &electra_traits());
  std::vector<NamedObjective> all;
  for (const auto& [name, traits] : sorted) all.push_back({name, *traits});
  return all;
}

const ObjectiveTraits* find_traits(std::string_view name) {
  const std::vector<NamedObjective> all = all_objectives();
  const auto found = std::ranges::find(all, name, &NamedObjective::name);
  return found == all.end() ? nullptr : &found->traits;
}

const ObjectiveTraits& objective_traits(std::string_view name) {
  if (const ObjectiveTraits* traits = find_traits(name)) return *traits;
  std::vector<std::string_view> known;
  for (const NamedObjective& one : all_objectives()) known.push_back(one.name);
  refuse_name("objective", name, known);
}

TrainingRun::TrainingRun(RunOptions options, text::Tokenizer tokenizer, Corpus corpus, Ranks& ranks)
    : options_(std::move(options)), tokenizer_(std::move(tokenizer)), corpus_(std::move(corpus)) {
  fill_in();
  check_dropout(design_);
  const ElectraVariant* variant = find_electra(options_.objective);
  if (has_two_networks(options_.objective) && !options_.mask.empty()) {
    throw UsageError(fmt::format("{} with {} {}: needs an objective of one network", field("mask"),
                                 field("objective"), options_.objective));
  }
  if (has_two_networks(options_.objective) && !options_.init &&
      options_.design.norm_placement == "admin") {
    throw UsageError(
        fmt::format("{} admin with {} {}: its start is measured on one network; use another "
                    "placement or objective",
                    field("norm_placement"), field("objective"), options_.objective));
  }
  if (variant != nullptr) {
    make_two(*variant);
  } else if (options_.objective == kMae) {
    make_mae();
  } else if (options_.objective == kCorrect) {
    make_correction();
  } else {
    make_one();
  }
  choose_trained();
  // Records have token types of their own.
  if (!objective_traits(options_.objective).reads_labels) check_token_types(tokenizer_, design_);
  if (objective_) check_mask_lengths(design_, corpus_, options_.requested.drop.rate > 0);
  if (options_.init) {
    const BesideModel beside = beside_model(options_.init->checkpoint());
    for (const std::string& note : left_out_notes(beside.left_out))
      start_notes_.push_back(fmt::format("{}: {}", options_.init->path(), note));
  }
  trainer_ = std::make_unique<Trainer>(*loss_, parameters_, corpus_, options_.trainer, ranks);
  if (ranks.count() > 1) {
    std::string all;
    for (const auto& [name, value] : facts()) all += fmt::format("{} {}\n", name, value);
    for (const auto& [name, value] : configs()) all += fmt::format("{} {}\n", name, value);
    check_alike(ranks, "text, vocabulary and options", all);
  }
}

void TrainingRun::choose_trained() {
  std::vector<TrainedNetwork> networks{{model::count_layers(design_), &map_}};
  if (const Other second = other(); second.design != nullptr)
    networks.push_back({model::count_layers(*second.design), second.map});
  if (source_) networks.push_back({model::count_layers(source_->design), &source_->map});
  if (map_.has_detector())
    networks.push_back({design_.variants.detector->num_hidden_layers, &map_.detector()});
  train::choose_trained(options_.trained, networks, parameters_);
  if (!electra_ || options_.switch_step == 0 || any_trained(electra_->second_map, parameters_))
    return;
  throw UsageError(
      fmt::format("{} {}: nothing of the model is trained, but only the model is trained after "
                  "these steps; change {} or {}",
                  field("switch"), options_.switch_step, field("train"), field("freeze")));
}

void TrainingRun::fill_in() {
  ObjectiveOptions& requested = options_.requested;
  requested.tokens = token_table(tokenizer_);
  requested.seed = options_.trainer.seed;
  requested.pairs = corpus_.pairs();
  requested.own_masks = corpus_.has_masks();
  requested.records = record_needs(corpus_);
  if (options_.streams) requested.records.streams = *options_.streams;
  if (!options_.mask.empty() && ends_with_itself(options_.mask))
    requested.records.predicts_next = true;
  const ObjectiveTraits& traits = objective_traits(options_.objective);
  DesignRecipe& recipe = options_.design;
  const Index longest = std::max(corpus_.longest_read(), corpus_.position_end());
  if (options_.init) {
    design_ = starting_design(*options_.init);
    if (design_.variants.detector && options_.objective != kCorrect) {
      throw UsageError(fmt::format("{} {}: {} has a detector; use {} {}", field("objective"),
                                   options_.objective, options_.init->path(), field("objective"),
                                   kCorrect));
    }
    if (design_.variants.latent && !traits.latent) {
      throw UsageError(fmt::format("{} {}: {} has latent bottlenecks; use {} {}",
                                   field("objective"), options_.objective, options_.init->path(),
                                   field("objective"), latent_objective()));
    }
    const bool changes = options_.changes.position || options_.changes.normalizer;
    if (changes && options_.init->encoder() != nullptr) {
      throw UsageError(
          fmt::format("{} cannot be combined with {} {}, whose encoder would keep its "
                      "own; remove it",
                      field(options_.changes.position ? "position" : "normalizer"),
                      field("objective"), options_.objective));
    }
    change_design(options_.changes, design_);
    check_corpus_length(corpus_);
    recipe = recipe_beside(design_, std::max(recipe.max_position_embeddings, longest));
    return;
  }
  if (recipe.vocab_size == 0) recipe.vocab_size = static_cast<Index>(tokenizer_.size());
  if (recipe.max_position_embeddings == 0) recipe.max_position_embeddings = longest;
  design_ = design_of(recipe);
  const bool two_types = traits.two_token_types != nullptr && traits.two_token_types(requested);
  if (two_types && design_.layer_kind == model::LayerKind::kTransformer)
    design_.type_vocab_size = 2;
  const text::Roles roles = tokenizer_.roles();
  if (roles.pad) design_.pad_token_id = *roles.pad;
  if (roles.mask) design_.mask_token_id = *roles.mask;
}

void TrainingRun::check_dropout(const model::Design& design) const {
  check_score_noise(options_.trainer, design);
  if (options_.trainer.attention_dropout == 0) return;
  const bool talks = design.variants.talking_heads != model::TalkingHeads::kNone;
  const bool scores = design.variants.previous_scores != model::PreviousScores::kNone;
  const bool largest = design.variants.largest_keys > 0;
  if (!options_.diversity && !talks && !scores && !largest && design.variants.mixer == nullptr)
    return;
  throw UsageError(fmt::format("{} with {}: dropout of these weights is not supported; use 0",
                               field("attention_dropout"),
                               field(options_.diversity                 ? "diversity"
                                     : talks                            ? "talking_heads"
                                     : largest                          ? "largest_keys"
                                     : design.variants.mixer == nullptr ? "previous_scores"
                                                                        : "mixer")));
}

void TrainingRun::check_corpus_length(const Corpus& corpus) const {
  check_trained_length(corpus, design_, options_.init->path(), check_length);
  const Other second = other();
  if (second.design == nullptr) return;
  check_trained_length(corpus, *second.design, path_of(second), check_length);
}

const std::string& TrainingRun::path_of(const Other& second) const {
  return options_.init_generator ? options_.init_generator->path() : second.name;
}

void TrainingRun::check(const Corpus& corpus) const {
  loss_->check(corpus);
  if (options_.init) {
    check_trained_length(corpus, design_, options_.init->path(), check_evaluated_length);
    if (const Other second = other(); second.design != nullptr)
      check_trained_length(corpus, *second.design, path_of(second), check_evaluated_length);
  }
  if (objective_) check_mask_lengths(design_, corpus, options_.requested.drop.rate > 0);
}

void TrainingRun::set_masks() {
  ObjectiveOptions& requested = options_.requested;
  const bool two_streams = design_.streams == model::Streams::kTwo;
  if (!options_.mask.empty()) {
    if (!objective_->takes_masks() || two_streams) {
      throw UsageError(
          fmt::format("{} with {} {}: this objective draws its own masks; remove the mask",
                      field("mask"), field("objective"), options_.objective));
    }
    set_given_masks(options_.mask, design_);
  }
  join_memory();
  if (!options_.mask.empty() || (requested.memory && !two_streams)) {
    check_parts_obey(design_,
                     options_.mask.empty() ? field("memory") + ": the mask" : field("mask"),
                     requested.allow_leak);
  }
  const bool open = std::ranges::any_of(model::own_masks(design_),
                                        [](const auto& layer) { return layer.mask.open(); });
  if ((!corpus_.has_masks() && !open) || two_streams) return;
  const std::string text = mask_text(design_);
  requested.mask = text == "full" ? "" : text;
  objective_ = find_objective(options_.objective).make(requested);
}

void TrainingRun::join_memory() {
  const std::optional<BlockMemory>& memory = options_.requested.memory;
  if (!memory) return;
  if (options_.requested.drop.rate > 0) {
    throw UsageError(
        fmt::format("{} and {} cannot be combined: blocks depend on the positions of tokens",
                    field("memory"), field("drop")));
  }
  // The sequences of permutations have masks of their own, which the objective joins.
  if (design_.streams == model::Streams::kTwo) return;
  const std::string mask = mask_text(design_);
  const std::vector<mask::MaskLayer> layers = mask::parse_open_mask_layers(mask);
  if (layers.size() != 1 || layers.front().count != 1 || !layers.front().mask.heads().empty()) {
    throw UsageError(fmt::format("{} {} is a list; with {} use one mask for all layers",
                                 field("mask"), mask, field("memory")));
  }
  const std::string read = memory->mask();
  model::set_mask(mask == "full" ? read : fmt::format("({}) & {}", mask, read), design_);
}

void TrainingRun::adapt_design(const std::function<void(model::Design&)>& adapt) {
  if (!options_.init) return adapt(design_);
  adapt_starting_design(*options_.init, adapt, design_);
}

void TrainingRun::check_towers() const {
  if (!options_.init) return;
  const bool towers = design_.streams == model::Streams::kTowers;
  if ((options_.init->design().streams == model::Streams::kTowers) == towers) return;
  throw UsageError(fmt::format("{} {} with {} {}: the model has {}, expected {}",
                               field("objective"), options_.objective, field("init"),
                               options_.init->path(), towers ? "one tower" : "two towers",
                               towers ? "two, or a new model" : "one"));
}

void TrainingRun::make_one() {
  objective_ = find_objective(options_.objective).make(options_.requested);
  adapt_design([this](model::Design& design) { objective_->adapt(design); });
  set_masks();
  check_towers();
  if (design_.streams == model::Streams::kTwo && model::adds_position(design_)) {
    throw UsageError(
        fmt::format("{} {} has a query stream, which does not see positions of the input; use {} "
                    "rope, transformer_xl or another scheme of queries and keys",
                    field("objective"), options_.objective, field("position")));
  }
  start_network();
  network_ = std::make_unique<Network<float>>(design_, map_, parameters_, options_.precision,
                                              CopyGateParameters(), source_ ? &*source_ : nullptr);
  network_->chunk_rows = options_.chunk_rows;
  if (const auto token = objective_->never_predicted()) network_->exclude(*token);
  if (options_.diversity) network_->reward_diversity(*options_.diversity);
  network_->set_recompute(options_.recompute);
  set_latents();
  if (const auto& memory = options_.requested.memory) network_->stop_at_blocks(memory->block_size);
  if (!options_.init) {
    start_residuals(*objective_, corpus_, options_.trainer.batch_size, map_, *network_,
                    parameters_);
  }
  loss_ = std::make_unique<ObjectiveLoss>(*network_, *objective_);
}

void TrainingRun::set_latents() {
  const std::optional<model::LatentDesign>& latent = design_.variants.latent;
  if (latent && latent->learned_kappa) {
    network_->add_divergence(options_.divergence.value_or(DivergenceLoss()));
  } else if (options_.divergence) {
    throw UsageError(fmt::format(
        "{}, {} and {} have no effect on a fixed concentration; remove them or use {}",
        field("kl_weight"), field("kl_cycle"), field("free_nats"), field("learned_kappa")));
  }
  if (!latent) return;
  std::vector<std::string> kappas, nats;
  for (Index m = 0; m < (latent->learned_kappa ? latent->layers : 1); ++m) {
    kappas.push_back(fmt::format("{:.4g}", network_->kappa(m)));
    nats.push_back(fmt::format("{:.4g}", nn::sphere_divergence(latent->size, network_->kappa(m))));
  }
  start_notes_.push_back(fmt::format(
      "latent bottlenecks: {}, dimension {}, {} {}: each carries at most {} nats{}", latent->layers,
      latent->size, latent->learned_kappa ? "learned kappa" : "kappa", fmt::join(kappas, ", "),
      fmt::join(nats, ", "), latent->learned_kappa ? " at the start" : ""));
}

void TrainingRun::start_network() {
  const model::ModelPlan& plan = settle_design();
  map_ = options_.init ? add_starting_model(*options_.init, plan, source_, parameters_)
                       : add_model(plan, model::head_like(plan, design_.head), "", ParameterMap(),
                                   parameters_);
  initialize_parameters(design_, map_,
                        {.seed = options_.trainer.seed,
                         .initializer_range = options_.initializer_range,
                         .residual_gain = options_.init ? 0 : residual_gain(options_.design)},
                        parameters_);
  if (options_.init) {
    new_tensors_ = copy_weights(starting_weights(*options_.init, design_), map_, parameters_);
    if (source_) copy_weights(options_.init->encoder()->weights(), source_->map, parameters_);
    start_digest_ = xxh3_of(std::as_bytes(std::span<const float>(parameters_.values())));
  }
}

bool TrainingRun::reads_initializer_range() const {
  if (!options_.init || !new_tensors_.empty()) return true;
  if (other().design != nullptr && !options_.init_generator) return true;
  model::TrainingConfig another = training_config();
  another.initializer_range *= 2;
  return saved_->config != options_.init->saved_design(design_, another).config;
}

std::string TrainingRun::transformers_class() const {
  const model::Family* family = model::find_family(saved_->family);
  if (family == nullptr || !model::in_transformers(*family)) return "";
  const auto& types = family->model_types;
  const bool own = std::ranges::find(types, design_.model_type) != types.end();
  return model::class_name(*family, own ? design_.model_type : saved_->family, design_.head.kind);
}

std::string TrainingRun::transformers_hint() const {
  if (options_.init || !objective_) return "";
  DesignRecipe recipe = options_.design;
  recipe.norm_placement = "pre";
  recipe.hidden_act = "gelu_new";
  std::string hint;
  // Not every design can be another one.
  const auto find = [&] {
    model::Design design = design_of(recipe);
    design.head = design_.head;
    design.streams = design_.streams;
    design.mask = design_.mask;
    design.variants.masks = design_.variants.masks;
    design.type_vocab_size = design_.type_vocab_size;
    const std::string family = model::saved_design(design).family;
    const model::Family* known = model::find_family(family);
    if (known == nullptr || !model::in_transformers(*known)) return;
    hint = fmt::format("; with {} pre and {} gelu_new it has, as {}", field("norm_placement"),
                       field("hidden_act"), model::class_name(*known, family, design.head.kind));
  };
  const auto refused = usage_error_message([&] {
    if (input_error_message(find)) hint.clear();
  });
  return refused ? "" : hint;
}

void TrainingRun::check_leak() {
  if (!objective_ || options_.requested.allow_leak) return;
  refuse_read_target(options_.objective, design_, *objective_, corpus_);
  const auto leak = probe_leak(*network_, *objective_, corpus_);
  if (!leak) return;
  throw UsageError(fmt::format(
      "{} {}: the state at position {} of sequence {} depends on token {}, which it predicts (it "
      "changes by {:.2g}); use a design that hides it, or {}",
      field("objective"), options_.objective, leak->row, leak->sequence + 1, leak->token,
      leak->difference, field("allow_leak")));
}

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
  check_trained_length(corpus_, design, start.path(), check_length);
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
  model.second_plan = settle_design();
  if (options_.init_generator) {
    model.generator_plan = options_.init_generator->saved_design(model.generator).plan;
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
  model.encoder_plan = settle_design();
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
