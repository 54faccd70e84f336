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
  double rate = 0.15;   ///< share of all tokens that is selected; the defaults are BERT's
  double mask = 0.8;    ///< share of the selected tokens
  double keep = 0.1;    ///< share of the selected tokens
  double random = 0.1;  ///< share of the selected tokens

  /// The weight of a row in its corrected row.
  double scale() const { return 1 - rate + rate * keep; }
  /// The weight of the [MASK] row in a corrected row.
  double mask_weight() const { return rate * mask; }
  /// The weight of the mean row in a corrected row.
  double mean_weight() const { return rate * random; }
  bool operator==(const MlmRates&) const = default;
};

/// Throws UsageError unless every share of `rates` is in [0, 1] and `mask`, `keep` and `random` add
/// up to 1 (within 1e-9).
void check_rates(const MlmRates& rates);

/// Over what the mean row is taken: the distribution of random tokens.
enum class MeanKind {
  kVocab,      ///< all rows, equally
  kUsed,       ///< the rows with a token other than [unusedN], equally
  kFrequency,  ///< all rows, weighted by the counts of their tokens
};

/// What a correction depends on, besides the table.
struct MlmCorrection {
  MlmRates rates;                        ///< the shares of pre-training
  std::uint64_t mask_row = 0;            ///< the row of [MASK]
  std::vector<std::uint64_t> kept_rows;  ///< ascending; not changed
  MeanKind mean = MeanKind::kVocab;      ///< what the mean row is the mean of
  std::string weights_digest;  ///< of the weights of kUsed and kFrequency; empty for kVocab

  /// The marker that a corrected file carries in its metadata:
  /// "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=103 kept=0,101 mean=vocab".
  std::string marker() const;
  /// Reads `marker`; std::nullopt unless it is exactly what marker() gives for valid rates.
  static std::optional<MlmCorrection> parse(std::string_view marker);
};

/// Key of the marker in `__metadata__`.
inline constexpr std::string_view kMlmMarkerKey = "masque.mlm_correct";

/// For kUsed: equal weights on the rows that have a token other than [unusedN], sum 1; 0 elsewhere.
/// One weight for each of `rows` rows with these `names`. Throws InputError if there is none.
std::vector<double> used_weights(std::uint64_t rows, const TokenNames& names);

/// For kFrequency: one weight for each of `rows` rows, sum 1, from the lines "token or id, tab,
/// count" of `text`. Rows that are not listed get 0. If every first field is a whole number they
/// are ids, otherwise all are tokens of `names`. Throws InputError with `path` and the line number:
/// no tab, no count (a finite number from 0), unknown token, id beyond the table, listed twice; and
/// with `path` if all counts are 0.
std::vector<double> frequency_weights(std::string_view text, const std::string& path,
                                      std::uint64_t rows, const TokenNames& names);

/// XXH3-128 of the bytes of `weights`, for the marker.
std::string weights_digest(std::span<const double> weights);

/// The map E′ = (1 − r + r·k)·E + r·m·E[MASK] + r·u·mean(E) of `table` [rows, hidden_size] of
/// `checkpoint`; r, k, m, u are rate, keep, mask and random of the rates of `correction`, whose
/// mask_row must be below rows.
/// Su Jianlin 2021, "The dropout view of MLM and MAE" (kexue.fm/archives/8770).
///
/// weights  of the rows in the mean, [rows], as above; empty (kVocab): all are equal
///
/// Reads the table once, on up to `threads` threads (≤ 0: all processors); the result does not
/// depend on their number. Throws InputError if a row of the mean is not finite, or their sum
/// overflows.
AffineRows mlm_map(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                   const MlmCorrection& correction, std::span<const double> weights, int threads);

/// The map that undoes `correction` on the corrected `table`, up to rounding. The original mean is
/// computed from the kept rows and the corrected mean. `checkpoint`, `table`, `weights` and
/// `threads` are as for mlm_map(). Throws InputError as it, and if the correction cannot be
/// inverted (nothing of the original rows is left, as with scale 0).
AffineRows inverse_mlm_map(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                           const MlmCorrection& correction, std::span<const double> weights,
                           int threads);

}  // namespace masque::surgery
