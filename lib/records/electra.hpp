// Replaced-token detection: selected tokens are replaced by a generator's, and the labels mark the
// tokens that differ from the original. Clark et al. 2020, arXiv:2003.10555.
#pragma once

#include "records/selection.hpp"

namespace masque::records {

/// Draws tokens by weight in constant time (Walker's alias method); the weights are those of ids
/// 0, 1, 2 …
class TokenSampler {
 public:
  /// Throws UsageError if no weight is positive, or one is negative or not finite.
  explicit TokenSampler(const std::vector<double>& weights);
  TokenId sample(Draw& draw) const;

 private:
  std::vector<std::uint64_t> threshold_;  ///< of 2^32
  std::vector<TokenId> other_;
};

struct ElectraRecordOptions {
  SelectionOptions selection;
  std::vector<double> weights = {};  ///< of the generator; empty: uniform over the vocabulary
  double temperature = 1;            ///< weights to the power 1 / temperature
};

/// Replaces the selected tokens, keeps the ids as they were in `original`, and sets `labels` to 1
/// where the token differs, else 0: a sample that happens to be right counts as original. Special
/// tokens are 0.
std::unique_ptr<Corruption> make_electra(const ElectraRecordOptions& options, TokenTable tokens);

/// The samples of another generator: record n of `path` (records as lines) has the ids that record
/// n becomes; lengths must agree. Labels and `original` as above. Memory: all ids of the file.
/// Throws InputError.
std::unique_ptr<Corruption> make_joined_electra(const std::string& path, const TokenTable& tokens);

}  // namespace masque::records
