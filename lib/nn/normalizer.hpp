// From scores to weights: one file per normalizer under nn/normalizer/.
//
// A normalizer works on a row of one head: the scores s_ij = scale · q_i·k_j + position terms of
// the visible keys j of query i, and n_i, their number. It is described by a few numbers, so that
// one streaming evaluation serves all: with m_i a shift of the row,
//     u_ij = f(t_i · s_ij − m_i)        weights a_ij = u_ij / d_i
// where f is exp or relu², t_i a temperature of the row and d_i a sum over the row or a constant.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::nn {

enum class ScoreMap {
  kExp,          ///< e^x; rows are shifted by their largest score
  kSquaredRelu,  ///< max(x, 0)²; no shift
};

enum class Divisor {
  kSum,          ///< Σ_j u_ij: rows sum to 1
  kRootSquares,  ///< √Σ_j u_ij²: ℓ2
  kConstant,     ///< `divisor(n_i)`
};

/// How scores of a row become weights. Immutable, thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual std::string_view name() const = 0;    ///< as on the command line: "softmax"
  virtual std::string_view source() const = 0;  ///< author, year, identifier
  virtual ScoreMap map() const = 0;
  virtual Divisor divisor() const = 0;
  /// t_i of a row with n visible keys.
  virtual double temperature(Index visible) const;
  /// d_i of Divisor::kConstant.
  virtual double constant(Index visible) const;
};

/// All registered normalizers with their default parameters, sorted by name.
std::span<const Normalizer* const> normalizers();
/// nullptr if there is none of this name.
const Normalizer* find_normalizer(std::string_view name);

/// Adds one at program start.
struct NormalizerRegistration {
  explicit NormalizerRegistration(std::unique_ptr<const Normalizer> normalizer);
};

}  // namespace masque::nn
