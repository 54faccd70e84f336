#include "train/run/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/name_table.hpp"
#include "base/string/parse_number.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/checkpoint/save.hpp"
#include "model/checkpoint/training_state.hpp"
#include "model/design.hpp"
#include "model/detector.hpp"
#include "model/variants.hpp"
#include "store/checkpoint.hpp"
#include "text/tokenizer.hpp"
#include "train/network/parameters.hpp"
#include "train/network/trained_positions.hpp"
#include "train/run/folder_parts.hpp"
#include "train/run/kept_files.hpp"
#include "train/run/settings.hpp"
#include "train/run/trainer_state.hpp"

namespace masque::train {

namespace {

// How much a step of training computes.

/// What goes through a network in a step.
struct Work {
  double tokens = 0;  ///< of all sequences
  double length = 0;  ///< of a sequence, on average
  double rows = 0;    ///< with a loss
};

using model::Role;

/// Whether a role's weight meets every token.
bool of_layers(Role role) {
  switch (role) {
    case Role::kQuery:
    case Role::kKey:
    case Role::kValue:
    case Role::kOutput:
    case Role::kUp:
    case Role::kGate:
    case Role::kDown:
    case Role::kGatedInput:
    case Role::kEmbeddingProjection: return true;
    default: return model::is_of_experts(role);
  }
}

/// The share of tokens that meet a weight of `role` in a layer of `design`.
double share_of_tokens(const model::Design& design, Role role) {
  const bool chosen =
      role == Role::kExpertUp || role == Role::kExpertGate || role == Role::kExpertDown;
  return chosen ? static_cast<double>(design.experts->per_token) /
                      static_cast<double>(design.experts->count)
                : 1;
}

/// Returns the operations of products for `work`, forward and backward, as papers count them: 6 for
/// each weight that a token meets, 6 n for each element of the queries and of the contexts of a
/// sequence of n tokens (the full square, for masks too), and 6 for each weight of the head and row
/// with a loss. The model is of `design` at the places `map` of `parameters`. Norms, activations,
/// mixers, projections of distances, a detector and the optimizer are not counted; of two streams
/// one is.
double step_operations(const model::Design& design, const ParameterMap& map,
                       const Parameters<float>& parameters, const Work& work) {
  double layers = 0, head = 0;
  const auto size = [&](Index parameter) {
    return static_cast<double>(parameters[parameter].size());
  };
  // Layers that share weights use them each.
  const double uses = static_cast<double>(design.num_hidden_layers) /
                      static_cast<double>(std::max<Index>(1, model::count_layers(design)));
  map.for_each([&](Role role, bool bias, Index, Index, Index parameter) {
    if (bias) return;
    if (of_layers(role)) {
      layers += share_of_tokens(design, role) *
                (role == Role::kEmbeddingProjection ? size(parameter) : uses * size(parameter));
    } else if (role == Role::kHeadTransform || role == Role::kDecoder) {
      head += size(parameter);
    }
  });
  const bool vocabulary =
      design.head.kind == model::HeadKind::kMasked || design.head.kind == model::HeadKind::kCausal;
  const Index table = map.weight(Role::kWordTable);
  if (vocabulary && map.weight(Role::kDecoder) == ParameterMap::kNone &&
      table != ParameterMap::kNone)
    head += size(table);
  const Index query_width = design.layer_kind == model::LayerKind::kGatedAttention
                                ? design.attention_key_size
                                : design.num_attention_heads * design.head_size;
  const double wide = static_cast<double>(query_width + model::context_width(design)) / 2;
  const double attention =
      design.variants.mixer == nullptr
          ? 12 * work.length * wide * static_cast<double>(design.num_hidden_layers)
          : 0;
  return work.tokens * (6 * layers + attention) + work.rows * 6 * head;
}

using model::kTrainingStateName;

constexpr std::uint64_t kMostConfigBytes = std::uint64_t{1} << 30;
/// In the metadata of a state: the digest of the run's metrics.
constexpr const char* kMetricsDigest = "xxh3.metrics";

/// Floats in a row.
store::OutputTensor row_tensor(const std::string& name, std::span<const float> values) {
  return float_tensor(name, {values.size()}, values);
}

}  // namespace

TrainingRun::~TrainingRun() = default;

double TrainingRun::operations(const StepReport& report) const {
  Work work;
  work.tokens = static_cast<double>(report.tokens);
  work.length = work.tokens / static_cast<double>(options_.trainer.batch_size);
  double sum = 0;
  if (mae_ || source_) return sum;
  for (const LossPart& part : report.loss.parts) {
    if (!part.judged) continue;
    work.rows = static_cast<double>(part.report.rows);
    if (map_.has_detector() && part.name == "detection") {
      sum += step_operations(model::detector_design(design_), map_.detector(), parameters_, work);
      continue;
    }
    const bool generator = electra_ && part.name == "generator";
    sum += step_operations(generator ? electra_->generator : design_,
                           generator ? electra_->generator_map : map_, parameters_, work);
  }
  return sum;
}

StepLosses TrainingRun::evaluate(const Corpus& corpus, Index most) {
  return train::evaluate(*loss_, corpus, most);
}

std::vector<Example> TrainingRun::first_examples(Index most) const {
  MASQUE_CHECK(objective_ != nullptr);
  return train::first_examples(*objective_, corpus_, most);
}

LossReport TrainingRun::evaluate_never_selected(Index most) {
  const auto sequences =
      static_cast<double>(trainer_->done()) * static_cast<double>(options_.trainer.batch_size);
  const double epochs = std::ceil(sequences / static_cast<double>(corpus_.size()));
  return train::evaluate_never_selected(*network_, *objective_, corpus_, most,
                                        static_cast<std::uint64_t>(epochs));
}

std::vector<std::pair<std::string, std::string>> TrainingRun::facts() const {
  std::vector<std::pair<std::string, std::string>> facts = options_.settings;
  facts.emplace_back("vocabulary", text::tokenizer_digest(tokenizer_));
  facts.emplace_back("corpus", corpus_.digest());
  if (options_.init) facts.emplace_back("init", start_digest_);
  if (options_.init_generator) facts.emplace_back("init_generator", generator_digest_);
  return facts;
}

TrainingRun::Other TrainingRun::other() const {
  if (electra_) return {&electra_->generator, &electra_->generator_map, "generator"};
  if (mae_) return {&mae_->decoder, &mae_->decoder_map, "decoder"};
  return {};
}

std::optional<model::ModelWeights<float>> TrainingRun::other_weights() const {
  const Other second = other();
  if (second.design == nullptr) return std::nullopt;
  return weights_of(*second.design, *second.map, parameters_);
}

void TrainingRun::add_other(const model::ModelWeights<float>& weights,
                            model::SaveOptions& options) const {
  const Other second = other();
  MASQUE_CHECK(second.design != nullptr);
  const std::string folder = second.folder();
  // So far the files are the tokenizer's, which both models have.
  const std::vector<store::OutputExtra> tokenizer = options.files;
  for (store::OutputExtra file : tokenizer) {
    file.name = folder + file.name;
    options.files.push_back(std::move(file));
  }
  model::ModelFiles files =
      options_.init_generator
          ? options_.init_generator->files(*second.design, weights, options.training)
          : model::model_files(model::saved_design(*second.design, options.training), weights);
  files.config.name = folder + files.config.name;
  files.weights.name = folder + files.weights.name;
  options.files.push_back(std::move(files.config));
  options.more.push_back(std::move(files.weights));
  if (!electra_ || electra_->gate.weight == ParameterMap::kNone) return;
  store::OutputWeights gate;
  gate.name = "copy_gate.safetensors";
  for (const auto& [name, at] :
       {std::pair("bias", electra_->gate.bias), std::pair("weight", electra_->gate.weight)}) {
    const MatrixView<float> value = parameters_.value(at);
    gate.tensors.push_back(row_tensor(name, value.row_span(0)));
  }
  options.more.push_back(std::move(gate));
}

model::TrainingConfig TrainingRun::training_config() const {
  return {.initializer_range = options_.initializer_range,
          .hidden_dropout = options_.trainer.hidden_dropout,
          .attention_dropout = options_.trainer.attention_dropout,
          .begin_token = corpus_.begin_token()};
}

model::SavedDesign TrainingRun::saved_as(const std::shared_ptr<const model::StartingModel>& start,
                                         const model::Design& design) const {
  return start ? start->saved_design(design, training_config())
               : model::saved_design(design, training_config());
}

const model::ModelPlan& TrainingRun::settle_design() {
  saved_ = std::make_unique<const model::SavedDesign>(saved_as(options_.init, design_));
  return saved_->plan;
}

model::ModelFiles TrainingRun::model_files(const model::ModelWeights<float>& weights) const {
  if (!options_.init) return model::model_files(*saved_, weights);
  if (!source_) return options_.init->files(design_, weights, training_config());
  const model::ModelWeights<float> source = weights_of(source_->design, source_->map, parameters_);
  return options_.init->files(design_, weights, training_config(), true, &source);
}

model::SaveOptions TrainingRun::save_options(std::deque<InputFile>& opened) const {
  model::SaveOptions options;
  options.training = training_config();
  options.files = tokenizer_files(tokenizer_, saved_->config, opened);
  return options;
}

void TrainingRun::add_kept(model::SaveOptions& options, std::deque<InputFile>& opened) const {
  if (!options_.init) return;
  for (store::OutputExtra& file : kept_files(options_.init->checkpoint(), opened))
    options.files.push_back(std::move(file));
}

void TrainingRun::save_model(const std::string& folder, Index positions) const {
  MASQUE_CHECK(!electra_ && !mae_ && !source_);
  std::deque<InputFile> opened;
  model::SaveOptions options = save_options(opened);
  add_kept(options, opened);
  options.write.existing = Existing::kReplace;
  model::Design design = design_;
  model::ModelWeights<float> weights = weights_of(design_, map_, parameters_);
  set_trained_positions(positions, design, weights);
  model::ModelFiles files =
      options_.init ? options_.init->files(design, weights, options.training)
                    : model::model_files(model::saved_design(design, options.training), weights);
  model::save_model(folder, std::move(files), options);
}

void TrainingRun::save(const std::string& folder, bool replace, const RunFiles& files) const {
  store::OutputWeights state = trainer_state(*trainer_, parameters_, files.moments);
  state.name = kTrainingStateName;
  for (const auto& [name, value] : facts()) state.metadata.emplace_back("masque." + name, value);
  if (files.spent_seconds)
    state.metadata.emplace_back("masque.spent", fmt::format("{}", *files.spent_seconds));
  state.metadata.emplace_back(fmt::format("masque.{}", kMetricsDigest),
                              metrics_digest(files.metrics));
  model::add_state_digests(state);
  std::deque<InputFile> opened;
  model::SaveOptions options = save_options(opened);
  const std::optional<model::ModelWeights<float>> second = other_weights();
  if (second) add_other(*second, options);
  add_kept(options, opened);
  options.files.push_back(metrics_file(files.metrics));
  if (!files.picture.empty()) options.files.push_back(text_file(kLossPicture, files.picture));
  options.more.push_back(std::move(state));
  options.write.existing = replace ? Existing::kReplace : Existing::kRefuse;
  const model::ModelWeights<float> weights = weights_of(design_, map_, parameters_);
  model::save_model(folder, model_files(weights), options);
}

void TrainingRun::check_saved(const std::string& folder) const {
  if (!has_files(tokenizer_)) return;
  const text::Tokenizer saved = text::Tokenizer::open(folder);
  if (text::read_alike(saved, tokenizer_)) return;
  throw InputError(tokenizer_.parts().path,
                   fmt::format("next to the config.json of the new model ({}) these files are read "
                               "as another tokenizer: expected a tokenizer.json, or a "
                               "tokenizer_class in tokenizer_config.json",
                               saved_->family));
}

bool TrainingRun::has_state(const std::string& folder) {
  return !input_error_message([&] { InputFile::open(join(folder, kTrainingStateName)); });
}

void TrainingRun::set_steps(std::int64_t steps) {
  trainer_->set_steps(steps);
  const auto setting =
      std::ranges::find(options_.settings, "steps", [](const auto& s) { return s.first; });
  if (setting != options_.settings.end())
    setting->second = trainer_->options().schedule.plan().text();
}

std::optional<double> TrainingRun::spent_of(const std::string& folder) {
  const std::optional<std::string> text = saved_setting(folder, "spent");
  if (!text) return std::nullopt;
  const auto seconds = parse_number<double>(*text);
  if (!seconds || !(*seconds >= 0)) {
    throw InputError(join(folder, kTrainingStateName),
                     fmt::format("masque.spent: found {}, expected seconds", escape(*text)));
  }
  return seconds;
}

std::optional<std::string> TrainingRun::saved_setting(const std::string& folder,
                                                      const std::string& name) {
  const std::string path = join(folder, kTrainingStateName);
  const store::Checkpoint state = store::open_checkpoint(path);
  model::check_state_facts(state, path);
  const std::string* found = state_fact(state, name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void TrainingRun::check_metrics(const std::string& folder) {
  const std::optional<std::string> stated = saved_setting(folder, kMetricsDigest);
  if (!stated || *stated == metrics_digest(folder)) return;
  throw InputError(join(folder, kMetricsName),
                   fmt::format("was changed since the run wrote it: it does not have the digest "
                               "that {} states",
                               kTrainingStateName));
}

void TrainingRun::resume(const std::string& folder, PlannedSteps steps) {
  const std::string path = join(folder, kTrainingStateName);
  const store::Checkpoint state = store::open_checkpoint(path);
  model::check_state_facts(state, path);
  // Without the same kind of start, other differences say little.
  const bool had_start = state_fact(state, "init") != nullptr;
  if (had_start != (options_.init != nullptr)) {
    throw InputError(
        path, had_start
                  ? fmt::format("the run started from a checkpoint; add its {}", field("init"))
                  : fmt::format("the run started from a new model; remove {}", field("init")));
  }
  Settings settings = facts();
  std::erase_if(settings, [&](const auto& one) {
    return steps == PlannedSteps::kOthers && one.first == "steps";
  });
  const auto saved = [&](const std::string& name) -> std::optional<std::string> {
    const std::string* found = state_fact(state, name);
    if (found != nullptr) return *found;
    // Earlier versions wrote it only where it was not the default.
    if (name == "gradient_precision")
      return std::string(name_in(sum_precision_names(), SumPrecision::kF32));
    return std::nullopt;
  };
  const auto is_start = [](const std::string& name) {
    return name == "init" || name == "init_generator";
  };
  // Where options differ, start values do, too: they are compared last.
  Settings options = settings;
  std::erase_if(options, [&](const auto& one) { return is_start(one.first); });
  if (const auto changed = changed_settings(options, saved)) throw InputError(path, *changed);
  std::string starts;
  for (const auto& [name, value] : settings) {
    if (!is_start(name) || saved(name).value_or(value) == value) continue;
    const model::StartingModel& start = name == "init" ? *options_.init : *options_.init_generator;
    starts += fmt::format("{}{} {} has changed", starts.empty() ? "" : " or ", field(name),
                          escape(start.path()));
  }
  if (const auto other = input_error_message([&] { check_design(folder); }))
    throw InputError(starts.empty() ? *other : fmt::format("{}, unless {} since", *other, starts));
  if (!starts.empty()) {
    throw InputError(path, fmt::format("the run started from other values: {} since, or other "
                                       "parts of it start anew; repeat the options of the run with "
                                       "the original model",
                                       starts));
  }
  if (const auto changed = changed_settings(settings, saved)) throw InputError(path, *changed);
  model::check_state(state, path);
  check_metrics(folder);
  read_trainer_state(state, path, *trainer_, parameters_);
  check_unedited(folder);
}

Settings TrainingRun::configs() const {
  Settings configs{{"config.json", saved_->config}};
  if (const Other second = other(); second.design != nullptr)
    configs.emplace_back(second.folder() + "config.json",
                         saved_as(options_.init_generator, *second.design).config);
  return configs;
}

void TrainingRun::check_design(const std::string& folder) const {
  const auto design_of_config = [](const std::string& config, const std::string& path) {
    Settings settings = config_settings(config, path);
    // What editors have noted of the weights.
    std::erase_if(settings, [](const auto& one) { return one.first.starts_with("masque."); });
    return settings;
  };
  for (const auto& [name, config] : configs()) {
    const std::string path = join(folder, name);
    const auto changed = changed_settings(
        design_of_config(config, path), design_of_config(read_text(path, kMostConfigBytes), path));
    if (changed) throw InputError(path, *changed);
  }
}

/// The state has the weights, too: what was changed in a model since would be lost.
void TrainingRun::check_unedited(const std::string& folder) const {
  model::SaveOptions options;
  options.training = training_config();
  const std::optional<model::ModelWeights<float>> second = other_weights();
  if (second) add_other(*second, options);
  const model::ModelWeights<float> weights = weights_of(design_, map_, parameters_);
  options.more.push_back(model_files(weights).weights);
  for (const store::OutputWeights& ours : options.more) {
    const std::string file = join(folder, ours.name);
    if (exists(file) && !are_saved(ours, store::open_checkpoint(file))) {
      throw InputError(file,
                       fmt::format("not the weights that the run wrote: {} would lose what "
                                   "was changed since; train on with {} {} and another output",
                                   field("resume"), field("init"), escape(folder)));
    }
  }
}

std::vector<std::string> TrainingRun::take_moments() {
  MASQUE_CHECK(options_.init != nullptr && trainer_->done() == 0);
  if (!is_folder(options_.init->path())) {
    throw InputError(options_.init->path(),
                     fmt::format("is a file, expected a folder with {} for {}", kTrainingStateName,
                                 field("init_moments")));
  }
  const std::string path = join(options_.init->path(), kTrainingStateName);
  const store::Checkpoint state = store::open_checkpoint(path);
  model::check_state(state, path);
  const std::string second = other().design != nullptr ? other().name + "." : std::string();
  // What starts anew has nothing to do with moments of its name.
  const auto takes = [&](const std::string& name) {
    return std::ranges::find(new_tensors_, name) == new_tensors_.end() &&
           (second.empty() || !name.starts_with(second));
  };
  const TakenMoments taken = read_moments(state, path, takes, *trainer_, parameters_);
  std::vector<std::string> notes{
      fmt::format("loaded moments of {} parameters, which have had {} updates", taken.parameters,
                  taken.updates)};
  for (const std::string& name : taken.missing) {
    if (second.empty() || !name.starts_with(second))
      notes.push_back(fmt::format("{}: starts without moments", escape(name)));
  }
  if (!second.empty())
    notes.push_back(fmt::format("{}: all parameters start without moments", other().name));
  return notes;
}

double measure_speed(const RunOptions& options, const text::Tokenizer& tokenizer,
                     const Corpus& corpus, double seconds, Ranks& ranks) {
  using Clock = std::chrono::steady_clock;
  RunOptions trial = options;
  trial.trainer.schedule.learning_rate = 0;
  TrainingRun run(trial, tokenizer, corpus, ranks);
  run.trainer().step();  // the first one touches all memory
  const auto start = Clock::now();
  std::int64_t steps = 0;
  double elapsed = 0;
  do {
    run.trainer().step();
    ++steps;
    elapsed = of_first(ranks, seconds_since(start));
  } while (elapsed < seconds && steps < 1000);
  return static_cast<double>(steps) / elapsed;
}

}  // namespace masque::train
