// From scores to weights: attention normalizers.
//
// A normalizer works on a row of one head: the scores s_ij = scale · q_i·k_j + position terms of
// the visible keys j of query i, and n_i, their number. It is described by a few numbers, so that
// one streaming evaluation serves all: with m_i a shift of the row,
//     u_ij = f(t_i · s_ij − m_i)        weights a_ij = u_ij / d_i
// where f is exp, relu² or the sigmoid, t_i a temperature of the row and d_i a sum over the row or
// a constant. Queries or keys may be brought to length 1 before (unit_length.hpp).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "nn/variant.hpp"

namespace masque::nn {

/// f: what a shifted score becomes.
enum class ScoreMap {
  kExp,          ///< e^x; rows are shifted by their largest score, but for Divisor::kConstant
  kSquaredRelu,  ///< max(x, 0)²; no shift
  kSigmoid,      ///< 1 / (1 + e^−x); no shift
};

/// d_i: what the numerators of a row are divided by.
enum class Divisor {
  kSum,          ///< Σ_j u_ij: rows sum to 1, or are 0 where all u_ij are
  kRootSquares,  ///< √Σ_j u_ij²: ℓ2
  kConstant,     ///< `constant(n_i)`
};

/// Which operands of q·k are divided by their Euclidean length, head by head; zero stays zero.
enum class UnitLength { kNeither, kQueries, kKeys, kBoth };

/// A number that a normalizer may be given: `log_n(base=512)`.
struct NormalizerParameter {
  std::string_view name;  ///< as in `log_n(base=512)`
  double value = 0;       ///< value of this normalizer
  double least = 0;       ///< possible values are least … most
  double most = 0;        ///< see `least`
};

/// How scores of a row become weights. Immutable, thread-safe.
class AttentionNormalizer {
 public:
  virtual ~AttentionNormalizer() = default;
  virtual std::string_view name() const = 0;    ///< as on the command line: "softmax"
  virtual std::string_view source() const = 0;  ///< author, year, identifier
  virtual ScoreMap map() const = 0;             ///< f
  virtual Divisor divisor() const = 0;          ///< d_i
  /// t_i of a row with `visible` keys in sight; finite, also for 0. 1 unless a
  /// normalizer says otherwise.
  virtual double temperature(Index visible) const;
  /// d_i of Divisor::kConstant for a row with `visible` keys in sight.
  virtual double constant(Index visible) const;
  virtual UnitLength unit_length() const;  ///< kNeither unless it says otherwise
  /// Whether q·k is multiplied by the scale of the problem (1/√d); else by 1.
  virtual bool scaled() const;
  /// b of a normalizer whose t_i is s log n_i + b with an s that each head of a model learns; its
  /// parameter `s` is where they start. Nothing: t_i is the same for all heads.
  virtual std::optional<double> offset_of_learned() const;
  virtual std::vector<NormalizerParameter> parameters() const;  ///< empty unless it says otherwise
  /// The same normalizer with other `values` of parameters(), in their order and bounds. Only for
  /// those that have parameters.
  virtual std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const;
};

/// All normalizers with their default parameters, sorted by name.
std::span<const AttentionNormalizer* const> normalizers();
/// The normalizer called `name`; nullptr if there is none.
const AttentionNormalizer* find_normalizer(std::string_view name);
/// The normalizer of `text`: "softmax", "log_n(base=64, clip=16)", a name, and values in place of
/// the defaults. Throws UsageError that names what is possible.
std::shared_ptr<const AttentionNormalizer> parse_normalizer(std::string_view text);

}  // namespace masque::nn
