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

/// What an ElectraSelection selects.
struct ElectraSelectionOptions {
  /// How many and which tokens; its seed is replaced by `seed`.
  records::SelectionOptions selection{.choice = records::Choice::kExact};
  /// Of the selected: [MASK] in the generator's input; others stay.
  double mask = 0.85;
  records::DropOptions drop{.rate = 0};  ///< DropToken before
  std::uint64_t seed = 0;                ///< of DropToken and of the selection
  records::TokenTable tokens = {};       ///< of the tokenizer: token_table()
};

/// Selects what the generator predicts. Immutable, thread-safe.
class ElectraSelection {
 public:
  /// Copies `options`. Throws UsageError for invalid shares, and without a mask token where one is
  /// put in.
  explicit ElectraSelection(const ElectraSelectionOptions& options);
  /// Returns what is selected of the sequence `item` in `epoch`: a function of both and the
  /// options.
  ElectraItem select(const CorpusItem& item, std::uint64_t epoch) const;

 private:
  std::unique_ptr<records::Corruption> drop_;
  std::unique_ptr<records::Corruption> mlm_;
  records::TokenTable tokens_;
};

/// Returns numbers in [0, 1) that tokens are drawn by, one for each of `rows`: a function of
/// `seed`, `epoch`, the number of `item` and row.
std::vector<double> draw_numbers(const CorpusItem& item, std::uint64_t epoch,
                                 std::span<const Index> rows, std::uint64_t seed);

/// Returns the generator's example of `item`: the selected tokens from `masked`.
Example generator_example(const ElectraItem& item);

/// Returns the ids of `item` with samples[k] at rows[k]. `samples` has one token for each of the
/// item's rows, here and below.
std::vector<TokenId> corrupted_ids(const ElectraItem& item, std::span<const TokenId> samples);

/// Returns the generator's example of `item` when it is rewarded for its draws: the `samples` as
/// targets, with these `weights`, one a row.
Example drawn_example(const ElectraItem& item, std::span<const TokenId> samples,
                      std::span<const double> weights);

/// Returns the discriminator's example of `item` with `samples` in it: target 1 where a corrupted
/// id differs from the true one, else 0 (a correct sample counts as original). `all`: at every
/// position, specials included; else at the selected ones (the ablation ELECTRA 15 %).
Example discriminator_example(const ElectraItem& item, std::span<const TokenId> samples, bool all);

/// Returns the example of `item` in the ablation Replace-MLM: the true tokens at the selected rows,
/// from `samples` instead of [MASK]. With `all`: at every position, for All-Tokens MLM.
Example replaced_example(const ElectraItem& item, std::span<const TokenId> samples, bool all);

/// Returns the example of `item` for Electric's noise distribution q, a cloze model: the ordinary
/// tokens, from the others.
Example cloze_example(const ElectraItem& item);

/// What q says of the ordinary rows of an item, one number each, in their order.
struct NoiseRows {
  std::span<const TokenId> draws;       ///< from q
  std::span<const double> draw_losses;  ///< −log q of them, nats
  std::span<const double> losses;       ///< −log q of the true tokens, nats
};

/// Returns the draws of `noise` at the selected rows of `item`.
std::vector<TokenId> selected_draws(const ElectraItem& item, const NoiseRows& noise);

/// Returns Electric's example of `item`, by conditional noise-contrastive estimation (Algorithm 2):
/// the ids with q's draws, of `noise`, in the selected places; at each ordinary row the target is 1
/// if it is selected, whatever was drawn, else 0, and the offset log q(token | the other true
/// tokens) + log(rate / (1 − rate)) is what is added to the energy for the logit of that. `rate`,
/// in (0, 1), is the share that is selected. Special tokens, which are never replaced, have no
/// loss.
Example energy_example(const ElectraItem& item, const NoiseRows& noise, double rate);

}  // namespace masque::train
