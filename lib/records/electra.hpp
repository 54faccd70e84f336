// Replaced-token detection: selected tokens are replaced by a generator's, and the labels mark the
// tokens that differ from the original. Clark et al. 2020, arXiv:2003.10555.
#pragma once

#include "records/selection.hpp"

namespace masque::records {

/// Draws tokens by weight in constant time (Walker's alias method); the weights are those of ids
/// 0, 1, 2 …
class TokenSampler {
 public:
  /// Probabilities are proportional to `weights`. Throws UsageError if no weight is positive, or
  /// one is negative or not finite. Cost O(number of weights).
  explicit TokenSampler(const std::vector<double>& weights);
  /// A token, with numbers of `draw`. Thread-safe, each thread with a `draw` of its own.
  TokenId sample(Draw& draw) const;

 private:
  std::vector<std::uint64_t> threshold_;  ///< of 2^32
  std::vector<TokenId> other_;
};

/// What make_electra does.
struct ElectraRecordOptions {
  SelectionOptions selection;        ///< which tokens; its seed draws the replacements, too
  std::vector<double> weights = {};  ///< of the generator; empty: uniform over the vocabulary
  double temperature = 1;            ///< weights to the power 1 / temperature
};

/// Replaces the tokens that `options` select, keeps the ids as they were in `original`, and sets
/// `labels` to 1 where the token differs, else 0: a sample that happens to be right counts as
/// original. Special tokens of `tokens` are 0. Throws UsageError for a temperature that is not
/// above 0, weights that TokenSampler refuses, uniform ones without the size of the vocabulary, and
/// as Selection; apply() throws InputError for a record that has labels, and what Selection::select
/// throws.
std::unique_ptr<Corruption> make_electra(const ElectraRecordOptions& options, TokenTable tokens);

/// The samples of another generator: record n of `path` (records as lines) has the ids that record
/// n becomes; lengths must agree. Labels and `original` as above, but all tokens count as ordinary.
/// Memory: all ids of the file. Throws InputError for a bad record, as one with ids that `tokens`
/// have not; apply() also for a record that has labels, or no sample of its length.
std::unique_ptr<Corruption> make_joined_electra(const std::string& path, const TokenTable& tokens);

}  // namespace masque::records
