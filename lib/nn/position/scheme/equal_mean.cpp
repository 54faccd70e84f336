// equal_mean: in training all positions of a sequence of N tokens are stretched by n/N, where n is
// drawn with the mean N: from an exponential distribution, or with `length` L from a Beta
// distribution on [0, L], n = L · Beta(1, L/N − 1), where N is less than L. The mean of each
// position is the position itself, so that without a draw they stay as they are. Positions that are
// no whole numbers are rotary ones.
#include <cmath>
#include <complex>
#include <vector>

#include "base/random/random.hpp"
#include "base/string/named_arguments.hpp"
#include "nn/position/distinct_positions.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

class EqualMean final : public PositionSchemeOf<EqualMean> {
 public:
  EqualMean(const RotarySettings& settings, Index length, std::uint64_t seed)
      : rope_(settings, rotary_scaling("rope"), {}), length_(length), seed_(seed) {}

  PositionFacts facts() const override { return rope_.facts(); }
  VariantInfo info() const override {
    VariantInfo info = rope_.info();
    info.source = "Su 2023, kexue.fm/archives/9444";
    return info;
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    const Index size = problem.shape.head_size;
    require_even(name(), "head size", size);
    std::vector<double> frequencies = rope_.frequencies(size);
    if (problem.draw) {
      const double stretch =
          drawn_stretch(*problem.draw, std::ssize(distinct_positions(problem.positions)));
      for (double& frequency : frequencies) frequency *= stretch;
    }
    return std::make_unique<RotaryTerms<T>>(
        rope_.layout(), size, kernel::rotary_table<T>(frequencies, problem.positions.queries, 1),
        kernel::rotary_table<T>(frequencies, problem.positions.keys, 1));
  }

 private:
  /// n/N, by the inverse of the distribution function.
  double drawn_stretch(std::uint64_t draw, Index tokens) const {
    Draw numbers(seed_, "position/equal_mean", draw);
    const double rest = 1 - numbers.uniform();
    if (length_ == 0) return -std::log(rest);
    if (tokens >= length_) return 1;
    const double ratio = static_cast<double>(length_) / static_cast<double>(tokens);
    return ratio * (1 - std::pow(rest, 1 / (ratio - 1)));
  }

  RotaryScheme rope_;
  Index length_;
  std::uint64_t seed_;
};

const PositionRegistration kRegistration(
    "equal_mean", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const Index length = arguments.count("length", 0, 0, 1 << 24);
      const Index seed = arguments.count("seed", 0, 0, Index{1} << 62);
      return std::make_unique<EqualMean>(rotary_settings(arguments), length,
                                         static_cast<std::uint64_t>(seed));
    });

}  // namespace

}  // namespace masque::nn
