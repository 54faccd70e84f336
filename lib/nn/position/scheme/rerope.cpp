// rerope: RoPE whose distance stops growing at a window, ρ = min(|i − j|, w) with its sign.
// leaky_rerope: it grows `factor` times slower there.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/distances.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

// Scores of rotated queries and keys whose distance is bent beyond a window: ReRoPE and Leaky
// ReRoPE.

/// s_ij = q_i · R(ρ(i − j))ᵀ k_j / √d: the whole score. ρ is odd; up to the window it is the
/// distance w, beyond it w + (|i − j| − w) · slope. R leaves features beyond `settings.size` alone.
/// Two products of pairs a score where the code of the authors makes two score matrices; memory:
/// cosines and sines of the distances.
template <class T>
class ReropeTerms final : public PositionTerms<T>,
                          public ScoreBias<T>,
                          public ScoreTermsGradient<T> {
 public:
  /// Terms for `problem`, whose positions are borrowed: ρ by `window` and `slope`, products times
  /// `scale`; `settings` has layout, base and size of R.
  ReropeTerms(const RotarySettings& settings, double window, double slope, double scale,
              const PositionProblem<T>& problem)
      : layout_(settings.layout),
        head_size_(problem.shape.head_size),
        scale_(scale),
        positions_(problem.positions),
        rows_(problem.positions) {
    const std::vector<double> frequencies =
        kernel::rotary_frequencies(settings.base, settings.size > 0 ? settings.size : head_size_);
    const auto pairs = static_cast<Index>(frequencies.size());
    cosine_ = Matrix<T>(std::ssize(rows_.values()), pairs);
    sine_ = Matrix<T>(std::ssize(rows_.values()), pairs);
    Index row = 0;
    for (const Index distance : rows_.values()) {
      const auto far = static_cast<double>(std::abs(distance));
      const double bent = far <= window ? far : window + (far - window) * slope;
      for (Index t = 0; t < pairs; ++t) {
        const double angle = std::copysign(bent, static_cast<double>(distance)) *
                             frequencies[static_cast<std::size_t>(t)];
        cosine_.view().at(row, t) = static_cast<T>(scale_ * std::cos(angle));
        sine_.view().at(row, t) = static_cast<T>(scale_ * std::sin(angle));
      }
      ++row;
    }
  }

  const ScoreBias<T>* bias() const override { return this; }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }

  std::unique_ptr<HeadBias<T>> head(Index /*head*/, MatrixView<const T> query,
                                    MatrixView<const T> key) const override {
    return std::make_unique<PairBias<T>>([this, query, key](Index i, Index j) {
      const T* q = query.row(i);
      const T* k = key.row(j);
      const Index row = row_of(i, j);
      T sum{};
      for (Index t = 0; t < cosine_.columns(); ++t) {
        const auto [a, b] = pair(t);
        sum += (q[a] * k[a] + q[b] * k[b]) * cosine_.view().at(row, t) +
               (q[a] * k[b] - q[b] * k[a]) * sine_.view().at(row, t);
      }
      for (Index c = rotated(); c < head_size_; ++c) sum += static_cast<T>(scale_) * q[c] * k[c];
      return sum;
    });
  }

  void backward(Index /*head*/, MatrixView<const T> query, MatrixView<const T> key,
                MatrixView<const T> d_scores, MatrixView<T> d_query, MatrixView<T> d_key) override {
    for (Index i = 0; i < d_scores.rows; ++i) {
      for (Index j = 0; j < d_scores.columns; ++j) {
        const Index row = row_of(i, j);
        const T* q = query.row(i);
        const T* k = key.row(j);
        for (Index t = 0; t < cosine_.columns(); ++t) {
          const auto [a, b] = pair(t);
          const T c = d_scores.at(i, j) * cosine_.view().at(row, t);
          const T s = d_scores.at(i, j) * sine_.view().at(row, t);
          if (d_query.data != nullptr) {
            d_query.at(i, a) += c * k[a] + s * k[b];
            d_query.at(i, b) += c * k[b] - s * k[a];
          }
          if (d_key.data != nullptr) {
            d_key.at(j, a) += c * q[a] - s * q[b];
            d_key.at(j, b) += c * q[b] + s * q[a];
          }
        }
        for (Index c = rotated(); c < head_size_; ++c) {
          const T d = d_scores.at(i, j) * static_cast<T>(scale_);
          if (d_query.data != nullptr) d_query.at(i, c) += d * k[c];
          if (d_key.data != nullptr) d_key.at(j, c) += d * q[c];
        }
      }
    }
  }

 private:
  Index row_of(Index i, Index j) const {
    return rows_.row(positions_.queries[static_cast<std::size_t>(i)] -
                     positions_.keys[static_cast<std::size_t>(j)]);
  }
  /// Features that are rotated: those after them have no position.
  Index rotated() const { return 2 * cosine_.columns(); }
  std::pair<Index, Index> pair(Index t) const {
    if (layout_ == kernel::RotaryLayout::kAdjacent) return {2 * t, 2 * t + 1};
    return {t, t + cosine_.columns()};
  }

  kernel::RotaryLayout layout_;
  Index head_size_;
  double scale_;
  PositionIds positions_;
  Distances rows_;
  Matrix<T> cosine_;
  Matrix<T> sine_;
};

/// ReRoPE (slope 0) and Leaky ReRoPE. Su 2023, kexue.fm/archives/9708.
class ReropeScheme final : public PositionSchemeOf<ReropeScheme> {
 public:
  /// ρ by `window` positions and `slope`; `settings` are those of R.
  ReropeScheme(const RotarySettings& settings, Index window, double slope)
      : settings_(settings), window_(static_cast<double>(window)), slope_(slope) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("", "2 n² d", "Su 2023, kexue.fm/archives/9708");
  }
  double scale(const PositionShape& /*shape*/) const override { return 0; }

  /// The terms for `problem`, whose positions are borrowed. Throws UsageError for an odd head size
  /// or size, and for a size above the head size.
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    require_even(name(), "head size", problem.shape.head_size);
    require_even(name(), "size", settings_.size);
    if (settings_.size > problem.shape.head_size) {
      throw UsageError(fmt::format("{}: size is {}, expected at most the {} features of a head",
                                   name(), settings_.size, problem.shape.head_size));
    }
    return std::make_unique<ReropeTerms<T>>(settings_, window_, slope_,
                                            PositionScheme::scale(problem.shape), problem);
  }

 private:
  RotarySettings settings_;
  double window_;
  double slope_;
};

constexpr std::string_view kLeaky = "leaky_rerope";

std::unique_ptr<PositionScheme> make_rerope(NamedArguments& arguments) {
  RotarySettings settings = rotary_settings(arguments);
  settings.size = arguments.count("size", 0, 0, Index{1} << 20);
  const Index window = arguments.count("window", 256, 0, Index{1} << 40);
  const double slope = arguments.name() == kLeaky ? 1 / arguments.number("factor", 8, 1, 1e6) : 0;
  return std::make_unique<ReropeScheme>(settings, window, slope);
}

const PositionRegistration kRegistration("rerope", make_rerope);
const PositionRegistration kLeakyRegistration(kLeaky, make_rerope);

}  // namespace

}  // namespace masque::nn
