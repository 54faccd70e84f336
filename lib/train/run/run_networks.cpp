// What a run trains: the network of an objective; those of two are made in run_two_networks.cpp.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/hash.hpp"
#include "base/name_table.hpp"
#include "base/parallel.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"
#include "nn/von_mises_fisher.hpp"
#include "train/run/leak_probe.hpp"
#include "train/run/mask_check.hpp"
#include "train/run/residual_start.hpp"
#include "train/run/run.hpp"
#include "train/run/starting_design.hpp"

namespace masque::train {

bool has_two_networks(std::string_view objective) {
  return objective == kMae || objective == kCorrect || find_electra(objective) != nullptr;
}

void check_objective(std::string_view name) {
  if (has_two_networks(name)) return;
  std::vector<std::string_view> known{kMae, kCorrect};
  for (const ObjectiveKind* kind : objectives()) {
    if (kind->name == name) return;
    known.push_back(kind->name);
  }
  for (const ElectraVariant& variant : electra_variants()) known.push_back(variant.name);
  std::ranges::sort(known);
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
  family_ = options_.init ? options_.init->family_of(design_) : model::config_of(design_).family;
  if (objective_) check_mask_lengths(design_, corpus_, options_.requested.drop.rate > 0);
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
  const bool plain_records = options_.objective == "records" && !requested.records.predicts_next &&
                             requested.records.streams == model::Streams::kOne;
  DesignRecipe& recipe = options_.design;
  const Index longest = std::max(corpus_.longest(), corpus_.position_end());
  if (options_.init) {
    design_ = starting_design(*options_.init);
    if (design_.variants.detector && options_.objective != kCorrect) {
      throw UsageError(fmt::format("{} {}: {} has a detector; use {} {}", field("objective"),
                                   options_.objective, options_.init->path(), field("objective"),
                                   kCorrect));
    }
    if (design_.variants.latent && options_.objective != "univae") {
      throw UsageError(fmt::format("{} {}: {} has latent bottlenecks; use {} univae",
                                   field("objective"), options_.objective, options_.init->path(),
                                   field("objective")));
    }
    change_design(options_.changes, design_);
    check_corpus_length(corpus_);
    recipe = recipe_beside(design_, std::max(recipe.max_position_embeddings, longest));
    return;
  }
  if (recipe.vocab_size == 0) recipe.vocab_size = static_cast<Index>(tokenizer_.size());
  if (recipe.max_position_embeddings == 0) recipe.max_position_embeddings = longest;
  design_ = design_of(recipe);
  // BERT and ELECTRA as transformers has them know two kinds of tokens.
  const bool encoder = options_.objective == "mlm" || options_.objective == "mdlm" ||
                       plain_records || options_.objective == kMae ||
                       find_electra(options_.objective) != nullptr;
  if (encoder && design_.layer_kind == model::LayerKind::kTransformer) design_.type_vocab_size = 2;
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
  if (!options_.diversity && !talks && !scores && !largest && design.variants.mixer.empty()) return;
  throw UsageError(fmt::format("{} with {}: dropout of these weights is not supported; use 0",
                               field("attention_dropout"),
                               field(options_.diversity              ? "diversity"
                                     : talks                         ? "talking_heads"
                                     : largest                       ? "largest_keys"
                                     : design.variants.mixer.empty() ? "previous_scores"
                                                                     : "mixer")));
}

void TrainingRun::check_corpus_length(const Corpus& corpus) const {
  check_length(corpus, design_.max_position_embeddings, options_.init->path());
  const Other second = other();
  if (second.design == nullptr) return;
  check_length(corpus, second.design->max_position_embeddings, path_of(second));
}

const std::string& TrainingRun::path_of(const Other& second) const {
  return options_.init_generator ? options_.init_generator->path() : second.name;
}

void TrainingRun::check(const Corpus& corpus) const {
  loss_->check(corpus);
  if (options_.init) {
    check_evaluated_length(corpus, design_.max_position_embeddings, options_.init->path());
    if (const Other second = other(); second.design != nullptr)
      check_evaluated_length(corpus, second.design->max_position_embeddings, path_of(second));
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
  requested.mask = design_.variants.mask;
  if (requested.mask.empty() && design_.mask != model::DefaultMask::kFull)
    requested.mask = model::default_mask_name(design_.mask);
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
  std::string mask = design_.variants.mask;
  if (mask.empty()) mask = model::default_mask_name(design_.mask);
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
  network_ = std::make_unique<Network<float>>(design_, map_, parameters_, options_.precision);
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
  const model::ModelPlan plan =
      options_.init ? options_.init->plan(design_) : model::plan_of(design_);
  map_ = add_model(plan, model::head_like(plan, design_.head), "", ParameterMap(), parameters_);
  initialize_parameters(design_, map_,
                        {.seed = options_.trainer.seed,
                         .initializer_range = options_.initializer_range,
                         .residual_gain = options_.init ? 0 : residual_gain(options_.design)},
                        parameters_);
  if (options_.init) {
    new_tensors_ = copy_weights(starting_weights(*options_.init, design_), map_, parameters_);
    start_digest_ = xxh3_of(std::as_bytes(std::span<const float>(parameters_.values())));
  }
}

bool TrainingRun::reads_initializer_range() const {
  if (!options_.init || !new_tensors_.empty()) return true;
  if (other().design != nullptr && !options_.init_generator) return true;
  model::TrainingConfig another = training_config();
  another.initializer_range *= 2;
  return options_.init->config(design_, training_config()) !=
         options_.init->config(design_, another);
}

std::string TrainingRun::transformers_class() const {
  const model::Family* family = model::find_family(family_);
  if (family == nullptr || !model::in_transformers(*family)) return "";
  return model::class_name(*family, family_, design_.head.kind);
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
    design.variants.mask = design_.variants.mask;
    design.type_vocab_size = design_.type_vocab_size;
    const std::string family = model::config_of(design).family;
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

}  // namespace masque::train
