// The tasks of ELECTRA's two networks, and of Electric's: the selection, and labels from samples.
// Clark et al. 2020, arXiv:2003.10555; arXiv:2012.08561. Samples are drawn in
// kernel/vocabulary_loss.hpp; the joint loss is in electra_loss.hpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "records/drop.hpp"
#include "records/mlm.hpp"
#include "train/data/corpus.hpp"
#include "train/data/example.hpp"

namespace masque::train {

/// A sequence between both networks.
struct ElectraItem {
  std::vector<TokenId> ids;      ///< as they are in the corpus
  std::vector<TokenId> masked;   ///< what the generator reads
  std::vector<Index> positions;  ///< empty: 0, 1, …
  std::vector<Index> segments;   ///< empty: 0
  std::vector<Index> rows;       ///< selected, ascending
  std::vector<Index> ordinary;   ///< that could have been selected: not special; ascending
};

struct ElectraSelectionOptions {
  records::SelectionOptions selection{.choice = records::Choice::kExact};
  /// Of the selected: [MASK] in the generator's input; others stay.
  double mask = 0.85;
  records::DropOptions drop{.rate = 0};  ///< DropToken before
  std::uint64_t seed = 0;
  records::TokenTable tokens = {};
};

/// Selects what the generator predicts. Immutable, thread-safe.
class ElectraSelection {
 public:
  /// Throws UsageError for invalid shares, and without a mask token where one is put in.
  explicit ElectraSelection(const ElectraSelectionOptions& options);
  ElectraItem select(const CorpusItem& item, std::uint64_t epoch) const;

 private:
  std::unique_ptr<records::Corruption> drop_;
  std::unique_ptr<records::Corruption> mlm_;
  records::TokenTable tokens_;
};

/// Numbers in [0, 1) that tokens are drawn by, one for each of `rows`: a function of seed, epoch,
/// sequence and row.
std::vector<double> draw_numbers(const CorpusItem& item, std::uint64_t epoch,
                                 std::span<const Index> rows, std::uint64_t seed);

/// The generator's: the selected tokens from `masked`.
Example generator_example(const ElectraItem& item);

/// The ids with samples[k] at rows[k].
std::vector<TokenId> corrupted_ids(const ElectraItem& item, std::span<const TokenId> samples);

/// The generator's when it is rewarded for its draws: the samples as targets, by these weights.
Example drawn_example(const ElectraItem& item, std::span<const TokenId> samples,
                      std::span<const double> weights);

/// The discriminator's: target 1 where a corrupted id differs from the true one, else 0 (a correct
/// sample counts as original). `all`: at every position, specials included; else at the selected
/// ones (the ablation ELECTRA 15 %).
Example discriminator_example(const ElectraItem& item, std::span<const TokenId> samples, bool all);

/// The ablation Replace-MLM: the true tokens at the selected rows, from samples instead of [MASK].
/// With `all`: at every position, for All-Tokens MLM.
Example replaced_example(const ElectraItem& item, std::span<const TokenId> samples, bool all);

/// Electric's noise distribution q, a cloze model: the ordinary tokens, from the others.
Example cloze_example(const ElectraItem& item);

/// What q says of the ordinary rows of an item, one number each, in their order.
struct NoiseRows {
  std::span<const TokenId> draws;       ///< from q
  std::span<const double> draw_losses;  ///< −log q of them
  std::span<const double> losses;       ///< −log q of the true tokens
};

/// The draws at the selected rows of an item.
std::vector<TokenId> selected_draws(const ElectraItem& item, const NoiseRows& noise);

/// Electric's, by conditional noise-contrastive estimation (Algorithm 2): the ids with q's draws in
/// the selected places; at each ordinary row the target is 1 if it is selected, whatever was drawn,
/// else 0, and the offset log q(token | the other true tokens) + log(rate / (1 − rate)) is what is
/// added to the energy for the logit of that. Special tokens, which are never replaced, have no
/// loss.
Example energy_example(const ElectraItem& item, const NoiseRows& noise, double rate);

}  // namespace masque::train
