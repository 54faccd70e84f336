// The gradients of several processes, summed while the backward pass still runs.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "train/loss/ranks.hpp"
#include "train/network/parameters.hpp"

namespace masque::train {

/// Replaces the gradients of a step by their sums over all ranks, bucket by bucket from the end of
/// their memory, where the last layers stand: each is begun as soon as it gets no more gradients.
/// Which sums are made, and in which order, goes by the parameters alone. For one thread.
class GradientSums {
 public:
  /// For all of `parameters` over `ranks`, as `options` say; both must stay, and what is trained
  /// must not change.
  GradientSums(Ranks& ranks, Parameters<float>& parameters, const SumOptions& options);
  GradientSums(const GradientSums&) = delete;
  GradientSums& operator=(const GradientSums&) = delete;
  /// Ranks::abandon, if something was begun and is not finished: a step has failed.
  ~GradientSums();

  /// Begins a step: all gradients may still change.
  void begin();
  /// The backward pass of a network that is the last one of the step goes on below `layer`:
  /// parameters of which `last_layers` (Network::last_layers) is at least `layer` get no more.
  void passed(Index layer, const std::vector<Index>& last_layers);
  /// No gradient changes any more: waits for all sums. Throws as Ranks::finish; then this is of no
  /// more use.
  void finish();
  /// Calls `visit`(gradients) for the own part of each bucket, [first, end) of the memory of
  /// gradients, in the order of the memory; of one rank for all.
  template <class F>
  void for_own(const F& visit) const {
    for (Index first = 0; first < size_; first += bucket_) {
      const RankShare own = own_part(ranks_, std::min(bucket_, size_ - first));
      if (own.begin < own.end) visit(RankShare{first + own.begin, first + own.end});
    }
  }
  /// Gives the own parts of `numbers`, which has the size of the gradients, to all ranks. Throws as
  /// Ranks::finish.
  void gather(std::span<float> numbers);

 private:
  void start_from(Index first);
  std::span<float> bucket(std::span<float> all, Index first) const;

  Ranks& ranks_;
  Parameters<float>& parameters_;
  SumOptions options_;
  std::vector<Index> by_place_;  ///< trained parameters in the order of their gradients
  Index size_ = 0;               ///< numbers of all gradients
  Index bucket_ = 0;             ///< size of a sum
  std::size_t open_ = 0;         ///< parameters of by_place_ that may still change: the first ones
  Index begun_ = 0;              ///< sums from this number on are begun
  bool in_flight_ = false;       ///< something was begun and not finished
};

}  // namespace masque::train
