// The correction of input embeddings for masked-language-model pre-training, seen as dropout: each
// row becomes the average input of its token.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "surgery/rows/row_map.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

/// How tokens were corrupted in pre-training: a share `rate` is selected; of these `mask` become
/// [MASK], `keep` stay and `random` become a random token. The three add up to 1.
struct MlmRates {
  double rate = 0.15;
  double mask = 0.8;
  double keep = 0.1;
  double random = 0.1;

  double scale() const { return 1 - rate + rate * keep; }
  double mask_weight() const { return rate * mask; }
  double mean_weight() const { return rate * random; }
  bool operator==(const MlmRates&) const = default;
};

/// Throws UsageError unless every share is in [0, 1] and the three add up to 1 (within 1e-9).
void check_rates(const MlmRates& rates);

/// Over what the mean row is taken: the distribution of random tokens.
enum class MeanKind {
  kVocab,      ///< all rows, equally
  kUsed,       ///< without [unusedN] and rows that have no token
  kFrequency,  ///< by counts
};

/// What a correction depends on, besides the table.
struct MlmCorrection {
  MlmRates rates;
  std::uint64_t mask_row = 0;
  std::vector<std::uint64_t> kept_rows;  ///< ascending; not changed
  MeanKind mean = MeanKind::kVocab;
  std::string weights_digest;  ///< identifies the weights of kUsed and kFrequency

  /// The marker that a corrected file carries in its metadata:
  /// "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=103 kept=0,101 mean=vocab".
  std::string marker() const;
  /// Reads a marker; std::nullopt if it is not a marker of marker().
  static std::optional<MlmCorrection> parse(std::string_view marker);
};

/// Key of the marker in `__metadata__`.
inline constexpr std::string_view kMlmMarkerKey = "masque.mlm_correct";

/// For kUsed: equal weights on the rows that have a token other than [unusedN], sum 1; 0 elsewhere.
/// Throws InputError if there is none.
std::vector<double> used_weights(std::uint64_t rows, const TokenNames& names);

/// For kFrequency: weights, sum 1, from lines "token or id, tab, count". Rows that are not listed
/// get 0. If every first field is a whole number they are ids, otherwise all are tokens. Throws
/// InputError with the line number: no tab, no count, unknown token, id beyond the table, listed
/// twice, all counts 0.
std::vector<double> frequency_weights(std::string_view text, const std::string& path,
                                      std::uint64_t rows, const TokenNames& names);

/// Digest of weights, for the marker.
std::string weights_digest(std::span<const double> weights);

/// The map E′ = (1 − r + r·k)·E + r·m·E[MASK] + r·u·mean(E) of a table; r, k, m, u are rate, keep,
/// mask and random of MlmRates.
/// Su Jianlin 2021, "The dropout view of MLM and MAE" (kexue.fm/archives/8770).
///
/// weights  of the rows in the mean, as above; empty (kVocab): all are equal
///
/// Reads the table once. Throws InputError if a row of the mean is not finite.
AffineRows mlm_map(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                   const MlmCorrection& correction, std::span<const double> weights, int threads);

/// The map that undoes a correction, up to rounding. The original mean is computed from the kept
/// rows and the corrected mean. Throws InputError if the correction cannot be inverted (scale 0).
AffineRows inverse_mlm_map(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                           const MlmCorrection& correction, std::span<const double> weights,
                           int threads);

}  // namespace masque::surgery
