#include "train/loss/gradient_sums.hpp"

#include <algorithm>

#include "base/divide.hpp"

namespace masque::train {

GradientSums::GradientSums(Ranks& ranks, Parameters<float>& parameters, const SumOptions& options)
    : ranks_(ranks),
      parameters_(parameters),
      options_(options),
      size_(std::ssize(parameters.gradients())),
      bucket_(bucket_size(ranks)) {
  for (Index i = 0; i < parameters.count(); ++i) {
    if (parameters[i].trained) by_place_.push_back(i);
  }
  std::ranges::sort(by_place_, {}, [&](Index i) { return parameters[i].gradient_offset; });
}

GradientSums::~GradientSums() {
  if (in_flight_) ranks_.abandon();
}

void GradientSums::begin() {
  open_ = by_place_.size();
  begun_ = round_up(size_, bucket_);
}

void GradientSums::passed(Index layer, const std::vector<Index>& last_layers) {
  if (ranks_.count() == 1) return;
  while (open_ > 0 && last_layers[static_cast<std::size_t>(by_place_[open_ - 1])] >= layer) --open_;
  if (open_ == 0) return start_from(0);
  const Parameter& lowest = parameters_[by_place_[open_ - 1]];
  start_from(lowest.gradient_offset + lowest.size());
}

void GradientSums::finish() {
  if (ranks_.count() == 1) return;
  open_ = 0;
  start_from(0);
  ranks_.finish();
  in_flight_ = false;
}

void GradientSums::gather(std::span<float> numbers) {
  if (ranks_.count() == 1) return;
  for (Index first = 0; first < size_; first += bucket_) {
    in_flight_ = true;
    ranks_.start_gather(bucket(numbers, first));
  }
  ranks_.finish();
  in_flight_ = false;
}

/// Begins the sums of buckets that stand at or after number `first`.
void GradientSums::start_from(Index first) {
  while (begun_ > 0 && begun_ - bucket_ >= first) {
    begun_ -= bucket_;
    in_flight_ = true;
    ranks_.start_sum(bucket(parameters_.gradients(), begun_), options_);
  }
}

std::span<float> GradientSums::bucket(std::span<float> all, Index first) const {
  const Index size = std::min(bucket_, size_ - first);
  return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
}

}  // namespace masque::train
