// What a model is trained to predict: one file per objective under train/data/objective/.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/score/score_kind.hpp"
#include "model/design.hpp"
#include "records/drop.hpp"
#include "records/mdlm.hpp"
#include "records/mlm.hpp"
#include "records/perm.hpp"
#include "records/prefix.hpp"
#include "train/data/corpus.hpp"
#include "train/data/example.hpp"

namespace masque::train {

/// What records with labels ask of a design.
struct RecordNeeds {
  LabelKind labels = LabelKind::kTokens;          ///< the corpus's
  model::Streams streams = model::Streams::kOne;  ///< streams of the model
  bool causal = false;                            ///< every sequence has the mask causal
  bool predicts_next = false;  ///< masks, those of the corpus or others, end with the token itself
};
/// Returns what the records of `corpus` need: two streams where every mask has an order of
/// permutation (xlnet_order), one else. O(sequences).
RecordNeeds record_needs(const Corpus& corpus);

/// Transformer-XL's memory: tokens read their own block and `memory` tokens before it, and no
/// gradient goes to the states of earlier blocks. Dai et al. 2019, arXiv:1901.02860.
struct BlockMemory {
  Index block_size = 1;  ///< tokens of a block
  Index memory = 0;      ///< tokens before a block that its tokens read

  /// What tokens read, in the mask language: "block_memory(SIZE,MEMORY)".
  std::string mask() const;
};

/// Options of all objectives; each reads those that its kind names. Seeds inside are replaced.
struct ObjectiveOptions {
  std::uint64_t seed = 0;                              ///< seed of all that is drawn
  records::DropOptions drop{.rate = 0};                ///< DropToken, before anything else
  records::MlmOptions mlm;                             ///< for mlm and unilm's bidirectional part
  records::MdlmOptions mdlm;                           ///< for mdlm
  records::PermOptions perm;                           ///< for plm and plm-hf
  records::PrefixOptions prefix{.mix = {2, 2, 1, 1}};  ///< for unilm
  records::MaeOptions mae;                             ///< what mae-mask and mae hide
  /// LatentDesign::layers; none: the model's, or for a model without bottlenecks a third of its
  /// layers, from one to four.
  std::optional<Index> latent_layers;
  std::optional<Index> latent_size;   ///< LatentDesign::size; none: the model's, or 16
  std::optional<double> kappa;        ///< LatentDesign::kappa; none: the model's, or 32
  bool learned_kappa = false;         ///< LatentDesign::learned_kappa
  RecordNeeds records;                ///< for records
  bool own_masks = false;             ///< the corpus has masks
  bool pairs = false;                 ///< the corpus has sources and targets
  std::optional<BlockMemory> memory;  ///< none: tokens read as the objective and masks say
  /// What all layers may read, in the mask language, where each example needs a mask of its own: it
  /// leaves words or a seed to the text, or is joined with the masks of a corpus. Empty: examples
  /// have the masks of the corpus alone.
  std::string mask = {};
  /// A design may let rows read what they predict: for those who study it.
  bool allow_leak = false;
  records::TokenTable tokens = {};  ///< tokens of the tokenizer: token_table()
};

/// Makes DropToken as `drop` says, with `seed` in place of its own and for the vocabulary `tokens`,
/// which is copied; nullptr for a rate of 0. Throws UsageError for a rate outside of [0, 1).
std::unique_ptr<records::Corruption> make_dropping(records::DropOptions drop, std::uint64_t seed,
                                                   const records::TokenTable& tokens);

/// What a model is trained to predict. Immutable, thread-safe.
class Objective {
 public:
  /// Copies `options`. Throws UsageError for a drop rate outside of [0, 1), a mask that is none,
  /// and a list of masks.
  explicit Objective(const ObjectiveOptions& options);
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;
  virtual ~Objective() = default;

  /// Sets what the objective decides of `design` (mask, streams, kind of head, token types, mask
  /// token) where that is still the default. Throws UsageError where the design says otherwise.
  virtual void adapt(model::Design& design) const = 0;

  /// Throws InputError for a `corpus` with sequences that the objective cannot take: odd ones of
  /// plm-hf, say; UsageError for masks of sequences that it does not take, or with DropToken.
  virtual void check(const Corpus& corpus) const;

  /// The example of `item` in `epoch` (of training; evaluation uses any fixed one): a function of
  /// what the item has, the epoch and the options. May have no rows. Throws InputError as check.
  Example example(const CorpusItem& item, std::uint64_t epoch) const;

  /// Whether it takes masks in addition to the design's: those of a corpus, and
  /// ObjectiveOptions::mask.
  virtual bool takes_masks() const { return false; }
  /// Where a row's target stands in an input of `size` tokens, counted from the row, if no row may
  /// read it; nothing where a token may stand where it is predicted, as a kept one of mlm, or
  /// stands nowhere.
  virtual std::optional<Index> target_offset(Index /*size*/) const { return std::nullopt; }
  /// A token of the vocabulary that is never predicted: it has the probability 0.
  virtual std::optional<TokenId> never_predicted() const { return std::nullopt; }

  /// Whether some positions never get a loss, however long training runs: masks are static, or the
  /// selection is fixed.
  virtual bool has_never_selected() const { return false; }
  /// An example of `item` corrupted as in training, but drawn anew, with a loss only at positions
  /// that the first `epochs` epochs of training do not select; `draw` takes the place of the epoch.
  /// Call only with has_never_selected(). Cost: that of a selection for each of these epochs, as
  /// far as they differ.
  virtual Example never_selected_example(const CorpusItem& item, std::uint64_t draw,
                                         std::uint64_t epochs) const;

 protected:
  /// The options as they were given.
  const ObjectiveOptions& options() const { return options_; }
  /// ObjectiveOptions::mlm with this objective's seed. Throws UsageError if it needs a mask token
  /// that the tokenizer has not.
  records::MlmOptions mlm_options() const;
  /// Makes the example of `record`, an item with tokens dropped and epoch set; may take parts of
  /// the record.
  virtual Example make(records::Record& record) const = 0;
  /// Returns `item` as a record of `epoch`, without dropped tokens and with its mask.
  records::Record record_of(const CorpusItem& item, std::uint64_t epoch) const;
  /// Returns `example`, which `item` gave in `epoch`, under ObjectiveOptions::mask as well.
  Example masked(Example example, const CorpusItem& item, std::uint64_t epoch) const;

 private:
  ObjectiveOptions options_;
  std::unique_ptr<records::Corruption> drop_;  ///< nullptr: none
  std::optional<mask::MaskExpression> mask_;   ///< ObjectiveOptions::mask
};

/// Returns the examples that `objective` makes of the first `most` sequences of `corpus` in epoch
/// 0.
std::vector<Example> first_examples(const Objective& objective, const Corpus& corpus, Index most);

/// What an objective reads and needs, of one network or two. What is left out it does without.
struct ObjectiveTraits {
  /// The options that it reads, except `seed` and `tokens`, spelled as fields ("span_p"): an option
  /// that another objective reads is refused.
  std::vector<std::string_view> options = {};
  /// Whether a new model has two token types even for texts of one segment, because transformers'
  /// class of that model (BERT, ELECTRA) has them. nullptr: it has not.
  bool (*two_token_types)(const ObjectiveOptions& options) = nullptr;
  /// Whether a model of this design was made for the objective, which is then trained unless
  /// another is named. nullptr: no model says so. At most one objective says so of a design.
  bool (*made_for)(const model::Design& design) = nullptr;
  /// The model is an encoder–decoder, and reads CorpusOptions::source.
  bool reads_sources = false;
  bool reads_labels = false;       ///< CorpusOptions::labels
  bool reads_dropped = false;      ///< CorpusOptions::dropped
  bool reads_corrections = false;  ///< CorpusOptions::corrections
  /// The first token of a text is predicted too, from a token in front of it.
  bool predicts_first = false;
  bool query_stream = false;  ///< rows that predict see no positions of the input
  /// The model has latent bottlenecks (model::LatentDesign), at the token that the tokenizer puts
  /// in front of a text.
  bool latent = false;
  /// The score of a text whose mean is the training loss; none: there is no such score.
  std::optional<evaluate::ScoreKind> score = {};

  /// Whether `option` is one of `options`.
  bool reads(std::string_view option) const;
};

/// What an objective of one network says of itself. Texts are of one line.
struct ObjectiveKind {
  std::string_view name;     ///< as on the command line
  std::string_view summary;  ///< what is predicted from what
  std::string_view source;   ///< name, author, year, identifier
  ObjectiveTraits traits;    ///< what it reads and needs
  /// Makes the objective. Throws UsageError for options that are wrong or do not go together.
  std::unique_ptr<const Objective> (*make)(const ObjectiveOptions& options);
};

/// All registered objectives, sorted by name.
std::span<const ObjectiveKind* const> objectives();
/// Returns the objective called `name`. Throws UsageError with the names that there are.
const ObjectiveKind& find_objective(std::string_view name);
/// Returns the objective that a model of `design` was made for; nullptr if no objective says so.
const ObjectiveKind* objective_made_for(const model::Design& design);

/// `const ObjectiveRegistration kThis{kKind};` in the objective's file.
struct ObjectiveRegistration {
  /// Adds `kind`, which must stay, to objectives() at program start.
  explicit ObjectiveRegistration(const ObjectiveKind& kind);
};

}  // namespace masque::train
