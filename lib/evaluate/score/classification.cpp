#include "evaluate/score/classification.hpp"

#include <cmath>
#include <numeric>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

double as_number(std::uint64_t count) { return static_cast<double>(count); }

}  // namespace

Confusion::Confusion(Index labels)
    : labels_(labels), counts_(static_cast<std::size_t>(labels * labels)) {
  MASQUE_CHECK(labels >= 2);
}

void Confusion::add(Index label, Index predicted, std::uint64_t count) {
  MASQUE_CHECK(0 <= label && label < labels_ && 0 <= predicted && predicted < labels_);
  counts_[static_cast<std::size_t>(label * labels_ + predicted)] += count;
}

std::uint64_t Confusion::at(Index label, Index predicted) const {
  return counts_[static_cast<std::size_t>(label * labels_ + predicted)];
}

std::uint64_t Confusion::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::uint64_t Confusion::right() const {
  std::uint64_t right = 0;
  for (Index k = 0; k < labels_; ++k) right += at(k, k);
  return right;
}

double Confusion::accuracy() const {
  return total() > 0 ? as_number(right()) / as_number(total()) : 0;
}

double Confusion::f1() const { return mean_f1(labels_ == 2 ? 1 : 0); }

double Confusion::macro_f1() const { return mean_f1(0); }

double Confusion::mean_f1(Index first) const {
  double sum = 0;
  Index count = 0;
  for (Index k = first; k < labels_; ++k) {
    std::uint64_t named = 0;
    for (Index other = 0; other < labels_; ++other) named += at(k, other) + at(other, k);
    if (named == 0) continue;
    sum += 2 * as_number(at(k, k)) / as_number(named);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

double Confusion::mcc() const {
  double right = 0;
  double together = 0;
  double labels = 0;
  double predictions = 0;
  for (Index k = 0; k < labels_; ++k) {
    double is = 0;
    double called = 0;
    for (Index other = 0; other < labels_; ++other) {
      is += as_number(at(k, other));
      called += as_number(at(other, k));
    }
    right += as_number(at(k, k));
    together += is * called;
    labels += is * is;
    predictions += called * called;
  }
  const double n = as_number(total());
  const double scale = (n * n - labels) * (n * n - predictions);
  return scale > 0 ? (n * right - together) / std::sqrt(scale) : 0;
}

}  // namespace masque::evaluate
