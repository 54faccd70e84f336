// Masked diffusion: a share of the tokens that is drawn for each record is hidden by the mask
// token. MDLM, Sahoo et al. 2024, arXiv:2406.07524 (log-linear schedule); LLaDA, Nie et al. 2025,
// arXiv:2502.09992; in blocks BD3-LM, Arriola et al. 2025, arXiv:2503.09573.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

/// What make_mdlm does.
struct MdlmOptions {
  /// Records whose rates are drawn together: a batch of training, from 1.
  std::uint64_t batch_size = 32;
  /// Above 0: each block of this many tokens has its own rate, and the record becomes its noised
  /// half followed by its clean half, with the positions repeated and the mask
  /// block_diffusion(block_size).
  std::uint64_t block_size = 0;
  std::uint64_t seed = 0;  ///< the same seed draws the same
};

/// The rates t. With p the record's place, or its number where the place is not known, B the batch
/// size, and m blocks of which this is the k-th:
///     s = (u + (p mod B)/B + k/m) mod 1,  t = ε + (1 − ε)(1 − s),  ε = 0.001,
/// u uniform, one for each ⌊p/B⌋ (of a number: and each epoch). So t is uniform in (ε, 1], and the
/// rates of a batch, and those of the blocks of a record, are spread evenly: draws of low variance
/// (MDLM; Kingma et al. 2021, arXiv:2107.00630). ε bounds the weights, as LLaDA's released
/// code has it. Immutable, thread-safe.
class MdlmRates {
 public:
  /// Reads batch_size (from 1) and seed of `options`.
  explicit MdlmRates(const MdlmOptions& options);
  /// The rates t of the `blocks` blocks, from 1, of `record`: by its place, else its number and
  /// epoch.
  std::vector<double> of(const Record& record, std::uint64_t blocks) const;

 private:
  std::uint64_t batch_size_;
  RandomSource source_;
};

/// Hides each token that is not special in `tokens` with the probability t of its record or block,
/// as `options` say, and fills `labels` and `weights`: 1/t where a token is hidden, else 0.
/// Tally::ordinary counts the tokens that could be hidden. Throws UsageError without a mask token
/// and for a batch size of 0; apply() throws InputError for a record that has labels or weights,
/// with blocks also for one with a mask, `original` or packed documents.
std::unique_ptr<Corruption> make_mdlm(const MdlmOptions& options, TokenTable tokens);

}  // namespace masque::records
