// kerple_log: −r1 · log(1 + r2 |i − j|) on scores, r1 and r2 trained for each head.
#include <cmath>

#include "nn/position/kerple_terms.hpp"

namespace masque::nn {

namespace {

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

const PositionRegistration kRegistration("kerple_log",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<KerpleScheme<Logarithm>>();
                                         });

}  // namespace

}  // namespace masque::nn
