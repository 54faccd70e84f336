// In which order training takes the sequences of a corpus.
#pragma once

#include "base/random/random.hpp"
#include "base/types.hpp"

namespace masque::train {

/// Every epoch takes each of `size` items once, in an order of its own. The n-th item of training
/// is a function of (size, seed, n) alone, so that a run goes on from n. Immutable, thread-safe.
///
/// The swap-or-not shuffle of Hoang, Morris and Rogaway 2012, doi:10.1007/978-3-642-32009-5_1: no
/// list, O(log size) random words a call.
class EpochOrder {
 public:
  /// Where training is after some items.
  struct Cursor {
    std::uint64_t epoch = 0;  ///< from 0
    Index item = 0;           ///< 0 … size − 1
    bool operator==(const Cursor&) const = default;
  };

  /// `size` is from 1 to 2^40; `seed` names the orders.
  EpochOrder(Index size, std::uint64_t seed);
  /// The item that training takes as number `n`, from 0 over all epochs.
  Cursor at(std::uint64_t n) const;
  /// The n with at(n) == `cursor`.
  std::uint64_t place(const Cursor& cursor) const;

 private:
  std::uint64_t shuffled(std::uint64_t x, std::uint64_t epoch, bool back) const;

  Index size_;
  std::uint64_t rounds_;
  std::uint64_t seed_;
};

}  // namespace masque::train
