// kerple_power: −r1 · |i − j|^r2 on scores, r1 and r2 trained for each head.
#include <cmath>

#include "nn/position/kerple_terms.hpp"

namespace masque::nn {

namespace {

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

const PositionRegistration kRegistration("kerple_power",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<KerpleScheme<Power>>();
                                         });

}  // namespace

}  // namespace masque::nn
