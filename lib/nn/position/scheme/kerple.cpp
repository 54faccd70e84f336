// kerple_log, kerple_power: trained kernels of the distance on scores. Chi et al. 2022,
// arXiv:2205.09921.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <vector>

#include "nn/attention/attention_reference.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/offset_bias.hpp"

namespace masque::nn {

namespace {

// What both kernels of KERPLE share: two positive trained numbers of each head.

/// The two trained numbers of each head, each at least kLeast as in the authors' code; below it
/// their gradient is 0. Borrowed.
template <class T>
struct KerpleNumbers {
  static constexpr double kLeast = 0.01;  ///< the least value
  MatrixView<const T> r1;                 ///< (1, heads)
  MatrixView<const T> r2;                 ///< (1, heads)

  /// `r`, or kLeast if r is not larger.
  static T positive(const T& r) { return reference::real_part(r) > kLeast ? r : T(kLeast); }
  T first(Index head) const { return positive(r1.at(0, head)); }  ///< r1 of `head`, at least kLeast
  /// The number r2 of `head`, at least kLeast.
  T second(Index head) const { return positive(r2.at(0, head)); }
};

/// KERPLE's terms of scores. Chi et al. 2022, arXiv:2205.09921. Kernel is a class with static
/// functions of a distance ≥ 0:
///
///     T value(r1, r2, distance)                  the term
///     T by_r1(r1, r2, distance), by_r2(…)        its derivatives
template <class Kernel>
class KerpleScheme final : public PositionSchemeOf<KerpleScheme<Kernel>> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    facts.direction_aware = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("r1 (heads), r2 (heads)", "n² heads",
                             "Chi et al. 2022, arXiv:2205.09921");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    // The authors draw from (0, 2) and (0, 1); normal numbers of like size here.
    return {{"r1", 1, shape.num_attention_heads, 1, 0.25, {}},
            {"r2", 1, shape.num_attention_heads, 0.5, 0.125, {}}};
  }

  /// The terms for `problem`, which is borrowed; called by PositionSchemeOf.
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    const KerpleNumbers<T> numbers{problem.parameters[0], problem.parameters[1]};
    const MatrixView<T> d_r1 = gradient_of(problem, 0);
    const MatrixView<T> d_r2 = gradient_of(problem, 1);
    auto bias = offset_bias<T>(
        [numbers](Index head, Index offset) {
          return Kernel::template value<T>(numbers.first(head), numbers.second(head),
                                           static_cast<double>(std::abs(offset)));
        },
        problem.positions);
    const auto slope = [=](Index head, Index offset, const T& d) {
      const auto distance = static_cast<double>(std::abs(offset));
      const T first = numbers.first(head);
      const T second = numbers.second(head);
      if (d_r1.data != nullptr && first == numbers.r1.at(0, head)) {
        d_r1.at(0, head) += d * Kernel::template by_r1<T>(first, second, distance);
      }
      if (d_r2.data != nullptr && second == numbers.r2.at(0, head)) {
        d_r2.at(0, head) += d * Kernel::template by_r2<T>(first, second, distance);
      }
    };
    return std::make_unique<OffsetTerms<T>>(std::move(bias), problem.positions, slope);
  }
};

/// kerple_log: −r1 · log(1 + r2 |i − j|) on scores, r1 and r2 trained for each head.
struct Logarithm {
  template <class T>
  static T value(const T& r1, const T& r2, double distance) {
    return -r1 * std::log(T{1} + r2 * static_cast<T>(distance));
  }
  template <class T>
  static T by_r1(const T& /*r1*/, const T& r2, double distance) {
    return -std::log(T{1} + r2 * static_cast<T>(distance));
  }
  template <class T>
  static T by_r2(const T& r1, const T& r2, double distance) {
    return -r1 * static_cast<T>(distance) / (T{1} + r2 * static_cast<T>(distance));
  }
};

const PositionRegistration kKerpleLogRegistration(
    "kerple_log", [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<KerpleScheme<Logarithm>>();
    });

/// kerple_power: −r1 · |i − j|^r2 on scores, r1 and r2 trained for each head.
struct Power {
  template <class T>
  static T power(const T& r2, double distance) {
    return distance == 0 ? T{} : std::exp(r2 * static_cast<T>(std::log(distance)));
  }
  template <class T>
  static T value(const T& r1, const T& r2, double distance) {
    return -r1 * power(r2, distance);
  }
  template <class T>
  static T by_r1(const T& /*r1*/, const T& r2, double distance) {
    return -power(r2, distance);
  }
  template <class T>
  static T by_r2(const T& r1, const T& r2, double distance) {
    return distance == 0 ? T{} : -r1 * power(r2, distance) * static_cast<T>(std::log(distance));
  }
};

const PositionRegistration kKerplePowerRegistration(
    "kerple_power", [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<KerpleScheme<Power>>();
    });

}  // namespace

}  // namespace masque::nn
