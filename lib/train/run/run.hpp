// A whole training run: a model that is made, trained, saved and gone on with.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file/scratch_file.hpp"
#include "model/checkpoint/save.hpp"
#include "model/checkpoint/starting_model.hpp"
#include "model/family.hpp"
#include "text/tokenizer.hpp"
#include "train/loss/correction_loss.hpp"
#include "train/loss/electra_loss.hpp"
#include "train/loss/mae_loss.hpp"
#include "train/network/recipe.hpp"
#include "train/run/trained_parameters.hpp"
#include "train/run/trainer.hpp"

namespace masque::train {

/// What a TrainingRun trains, and how.
struct RunOptions {
  /// What training starts from; nullptr: a new model. Of two networks the one that is kept; the
  /// other is then made by recipe_beside. Of `design` max_position_embeddings alone is read then.
  std::shared_ptr<const model::StartingModel> init;
  /// What the generator starts from, with `init` and one of electra_variants(); nullptr: a new one.
  std::shared_ptr<const model::StartingModel> init_generator;
  DesignChanges changes;  ///< changes of the starting model's design
  DesignRecipe design;    ///< vocab_size and max_position_embeddings may be 0: as the corpus needs
  /// Name of one of objectives() or electra_variants(), kMae or kCorrect.
  std::string objective = "mlm";
  /// `tokens`, `seed`, `records`, `pairs`, `own_masks` and `mask` are filled in.
  ObjectiveOptions requested;
  /// What the layers may read, in the mask language, in place of the design's mask; empty: that.
  std::string mask;
  std::optional<model::Streams> streams;  ///< for records; none: record_needs()
  // For electra_variants() alone:
  double generator_size = 0.25;                     ///< the generator's share of the widths
  std::optional<double> discriminator_weight;       ///< λ of ElectraLoss; none: the variant's
  std::int64_t switch_step = 0;                     ///< ElectraLossOptions::switch_step
  SharedTables shared_tables = SharedTables::kAll;  ///< without a switch
  bool adversarial = false;                         ///< ElectraModel::adversarial
  // For kMae alone:
  double decoder_size = 0.5;  ///< the decoder's share of the widths
  Index decoder_layers = 1;   ///< number of layers of the decoder
  // For kCorrect alone:
  /// The detector's share of the widths; none: 0.5, or that of `init`.
  std::optional<double> detector_size;
  /// Number of layers of the detector; none: 1, or those of `init`.
  std::optional<Index> detector_layers;
  double correction_weight = 0.8;  ///< λ of CorrectionLoss
  /// Weights of the measures in train/network/diversity.hpp, which the loss rewards; none: not
  /// measured.
  std::optional<Diversities> diversity;
  /// For bottlenecks that learn their concentration; none: DivergenceLoss as it is.
  std::optional<DivergenceLoss> divergence;
  TrainerOptions trainer;                                 ///< batches, schedule, optimizer, seed
  TrainedOptions trained;                                 ///< which parameters are trained
  kernel::Precision precision = kernel::Precision::kF32;  ///< precision of products
  double initializer_range = 0.02;                        ///< StartOptions::initializer_range
  Index chunk_rows = 1024;                                ///< Network::chunk_rows
  Recompute recompute = Recompute::kAuto;                 ///< changes no bit: not one of `settings`
  /// All options that decide the bytes, as they were given; a run goes on only with the same. Of a
  /// starting model the design is not among them: resume() compares config.json.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// What stands in a checkpoint besides the model.
struct RunFiles {
  const ScratchFile& metrics;  ///< metrics.jsonl
  std::string picture;         ///< loss.svg; empty: none
  /// Seconds spent of a time that the run has; for spent_of().
  std::optional<double> spent_seconds;
  /// Result of gather_moments(), if the trainer shards() them.
  const ScratchFile* moments = nullptr;
};

/// Whether a run goes on to as many steps as it was planned for.
enum class PlannedSteps {
  kSame,    ///< as many
  kOthers,  ///< perhaps another number
};

/// An objective of one network or two.
struct NamedObjective {
  std::string_view name;          ///< as on the command line
  const ObjectiveTraits& traits;  ///< what it reads and needs
};
/// Returns all objectives, those of electra_variants(), kMae and kCorrect among them, sorted by
/// name.
std::vector<NamedObjective> all_objectives();
/// Returns what the objective `name`, of one network or two, reads and needs; nullptr if there is
/// no such objective.
const ObjectiveTraits* find_traits(std::string_view name);
/// Returns what the objective `name` reads and needs. Throws UsageError with the names that there
/// are.
const ObjectiveTraits& objective_traits(std::string_view name);
/// Whether `objective` is one of electra_variants(), kMae or kCorrect: no Objective. kCorrect's
/// second network is a detector inside the model.
bool has_two_networks(std::string_view objective);

/// A model with its trainer, corpus and tokenizer. For one thread; kernels use all.
class TrainingRun {
 public:
  /// Model and state as they start, of `options`, on `corpus`, whose ids are those of `tokenizer`.
  /// `ranks` must stay; all of them make the same run together, and then save() and evaluate() are
  /// for one of them. Throws UsageError and InputError for options, designs and corpora that do not
  /// fit each other, or that are not the same on all ranks.
  TrainingRun(RunOptions options, text::Tokenizer tokenizer, Corpus corpus,
              Ranks& ranks = one_rank());
  ~TrainingRun();

  /// The design of the network that is kept.
  const model::Design& design() const { return design_; }
  /// The family whose config.json it gets.
  const std::string& family() const { return saved_->family; }
  /// Number of values of all networks.
  Index parameter_count() const { return parameters_.size(); }
  /// Number of values that are trained.
  Index trained_count() const { return count_trained(parameters_); }
  /// The names of the tensors that start anew in a model that starts from a checkpoint.
  /// Those of a second network without a checkpoint are left out.
  const std::vector<std::string>& new_tensors() const { return new_tensors_; }
  /// Whether RunOptions::initializer_range decides anything: how some tensor starts, or what a
  /// config.json says.
  bool reads_initializer_range() const;
  /// The class of transformers that loads the saved model: "BertForMaskedLM"; empty if none does.
  std::string transformers_class() const;
  /// Where transformers has no class for a new model of one network: the options that would give it
  /// one, as the end of a message; empty if there are none.
  std::string transformers_hint() const;
  /// What else there is to say of such a start, one line each.
  const std::vector<std::string>& start_notes() const { return start_notes_; }
  /// step_operations of all networks, in a step like that of `report`; 0 for mae, whose encoder
  /// reads only what was kept, and for encoder–decoders.
  double operations(const StepReport& report) const;
  /// The corpus that it trains on.
  const Corpus& corpus() const { return corpus_; }
  /// The trainer on that corpus. Lives as long as the run.
  Trainer& trainer() { return *trainer_; }
  /// The network that is kept; of one objective alone.
  Network<float>& network() { return *network_; }
  /// The values of all networks.
  Parameters<float>& parameters() { return parameters_; }
  /// The first `most` sequences of the corpus as its first epoch corrupts them; of one objective
  /// alone.
  std::vector<Example> first_examples(Index most) const;
  /// Where the parameters of the network that is kept stand.
  const ParameterMap& map() const { return map_; }
  /// Makes another trainer of the same values with `options`, on another `corpus`. Both the corpus
  /// and the run must outlive it.
  std::unique_ptr<Trainer> trainer_on(const Corpus& corpus, const TrainerOptions& options) {
    return std::make_unique<Trainer>(*loss_, parameters_, corpus, options);
  }
  /// For one network: throws UsageError if a row reads what it predicts (mask_check.hpp): as masks
  /// say, and by the network with the values as they are. Does nothing with
  /// ObjectiveOptions::allow_leak.
  void check_leak();
  /// Throws UsageError or InputError for a `corpus` that the model cannot take: another one, to be
  /// evaluated. A sequence that is too long is reported with its line.
  void check(const Corpus& corpus) const;
  /// As train::evaluate: the losses of the first `most` sequences of `corpus` (0: all).
  StepLosses evaluate(const Corpus& corpus, Index most);
  /// Whether some positions of the text never have a loss.
  bool has_never_selected() const { return objective_ && objective_->has_never_selected(); }
  /// Losses of the first `most` sequences that it is trained on (0: all), at positions that the
  /// epochs begun so far have not selected. Only with has_never_selected(). Throws Interrupted.
  LossReport evaluate_never_selected(Index most);

  /// Writes the Hugging Face folder `folder` with the tokenizer's files, what stays true of those
  /// next to a starting model (kept_files), the state of the run and `files`, whole or not at all;
  /// with `replace` over an older one of the same run. Of two networks one is the folder's model,
  /// and the generator or decoder a model in its sub-folder of that name. Throws InputError if it
  /// cannot be written, and without `replace` if there is one already.
  void save(const std::string& folder, bool replace, const RunFiles& files) const;
  /// Throws InputError if `folder`, which save() wrote, has the files of a tokenizer and reads them
  /// as another one than the run's.
  void check_saved(const std::string& folder) const;
  /// Writes the model alone with the tokenizer's files as `folder`, over an older one of the same;
  /// as one that was trained on sequences of `positions` tokens (set_trained_positions). Not of two
  /// networks but for kCorrect. Throws InputError if it cannot be written.
  void save_model(const std::string& folder, Index positions) const;
  /// Whether `folder` holds the state of a run.
  static bool has_state(const std::string& folder);
  /// The setting `name` of the run in `folder`; `nullopt` if absent. Throws InputError, also if the
  /// settings were changed since the run wrote them.
  static std::optional<std::string> saved_setting(const std::string& folder,
                                                  const std::string& name);
  /// Throws InputError if the metrics in `folder` were changed since the run wrote them.
  static void check_metrics(const std::string& folder);
  /// RunFiles::spent_seconds of the checkpoint in `folder`. Throws InputError.
  static std::optional<double> spent_of(const std::string& folder);
  /// Trainer::set_steps with `steps`, and the setting "steps".
  void set_steps(std::int64_t steps);
  /// For a run that starts from a checkpoint and has not begun: the optimizer starts with the
  /// moments in the checkpoint's folder (read_moments), but for what starts anew and a second
  /// network. Returns what there is to say, one line each. Throws InputError.
  std::vector<std::string> take_moments();
  /// Goes on from `folder`: values, optimizer and step are as they were saved. Its metrics are
  /// only compared with their digest. Throws InputError if its settings, vocabulary, corpus or
  /// design (the text of its config.json) are others, by name, and if its state, its metrics or its
  /// model are not those that the run wrote; with `steps` kOthers the setting "steps" may be
  /// another one, and the schedule is the own from here on.
  void resume(const std::string& folder, PlannedSteps steps = PlannedSteps::kSame);

 private:
  std::vector<std::pair<std::string, std::string>> facts() const;
  /// The names of the files config.json of all networks and their texts: a design is that text, for
  /// it has all that options, defaults and a starting model decide.
  std::vector<std::pair<std::string, std::string>> configs() const;
  void fill_in();
  void check_dropout(const model::Design& design) const;
  void make_one();
  void make_correction();
  /// Adds the parameters of `design_` as they start, with their values of a checkpoint.
  void start_network();
  /// Lets an objective say what the design must be.
  void adapt_design(const std::function<void(model::Design&)>& adapt);
  void set_masks();
  /// Lets the layers read what ObjectiveOptions::memory says.
  void join_memory();
  /// Lets the network learn concentrations where it does, and says what bottlenecks can say.
  void set_latents();
  /// Refuses a starting model of two towers for an objective of one, and the other way round.
  void check_towers() const;
  void check_corpus_length(const Corpus& corpus) const;
  void check_unedited(const std::string& folder) const;
  void check_design(const std::string& folder) const;
  model::TrainingConfig training_config() const;
  /// `design` as it is written: by the checkpoint `start`, if there is one.
  model::SavedDesign saved_as(const std::shared_ptr<const model::StartingModel>& start,
                              const model::Design& design) const;
  /// Keeps `design_`, which nothing changes any more, as it is written; returns the plan.
  const model::ModelPlan& settle_design();
  model::ModelFiles model_files(const model::ModelWeights<float>& weights) const;
  void make_two(const ElectraVariant& variant);
  model::Design made_generator(const ElectraVariant& variant) const;
  void start_electra(ElectraModel& model);
  ElectraLossOptions electra_options(const ElectraVariant& variant) const;
  std::string digest_of(const ParameterMap& map);
  model::SaveOptions save_options(std::deque<InputFile>& opened) const;
  /// Adds what stays true of the starting model's other files.
  void add_kept(model::SaveOptions& options, std::deque<InputFile>& opened) const;
  void make_mae();
  /// The other network's design, parameter map, name and sub-folder, if there are two.
  struct Other {
    const model::Design* design = nullptr;
    const ParameterMap* map = nullptr;
    std::string name = {};
    std::string folder() const { return name + "/"; }
  };
  Other other() const;
  /// Views of its values; nothing if there is none.
  std::optional<model::ModelWeights<float>> other_weights() const;
  /// What messages call it.
  const std::string& path_of(const Other& second) const;
  void choose_trained();
  void add_other(const model::ModelWeights<float>& weights, model::SaveOptions& options) const;

  RunOptions options_;
  text::Tokenizer tokenizer_;
  Corpus corpus_;
  model::Design design_;
  std::unique_ptr<const model::SavedDesign> saved_;  ///< `design_` as it is written
  mutable Parameters<float> parameters_;
  ParameterMap map_;
  std::optional<EncoderPart> source_;           ///< only of an encoder–decoder
  std::unique_ptr<const Objective> objective_;  ///< only with one network
  std::unique_ptr<Network<float>> network_;
  std::optional<ElectraModel> electra_;  ///< only with two networks
  std::optional<MaeModel> mae_;
  std::unique_ptr<StepLoss> loss_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<std::string> new_tensors_, start_notes_;
  /// Digests of the values at the start, where these come from a checkpoint.
  std::string start_digest_, generator_digest_;
};

/// Returns the steps a second of a run of `options` on `corpus` with `tokenizer` (both are copied):
/// measured for about `seconds` with a learning rate of 0, on at most 1000 steps after a first one.
/// All `ranks` call it together; rank 0's clock decides. Throws as TrainingRun::TrainingRun.
double measure_speed(const RunOptions& options, const text::Tokenizer& tokenizer,
                     const Corpus& corpus, double seconds, Ranks& ranks = one_rank());

}  // namespace masque::train
