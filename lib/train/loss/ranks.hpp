// Processes that train one model together, on one machine or many.
#pragma once

#include <span>
#include <string_view>

#include "base/types.hpp"

namespace masque::train {

/// Each process, a rank, has all of the model and its own share of every batch. What they must
/// agree on are sums over all ranks, and all ranks ask for the same sums in the same order. For one
/// thread.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  virtual int count() const = 0;
  virtual int rank() const = 0;
  /// numbers ← their sum over all ranks, added in the order of the ranks: the same bits everywhere
  /// and every time. The same size everywhere.
  virtual void sum(std::span<float> numbers) = 0;
  virtual void sum(std::span<double> numbers) = 0;

  bool is_first() const { return rank() == 0; }
};

/// A process by itself: sums are what they are.
Ranks& one_rank();

/// What rank 0 says.
double of_first(Ranks& ranks, double value);
/// Whether some rank says so.
bool any(Ranks& ranks, bool value);
/// Of the first rank whose value is not 0; 0: none.
int of_any(Ranks& ranks, int value);
/// Throws InputError if `what`, described by `text`, is not the same on all ranks.
void check_alike(Ranks& ranks, std::string_view what, std::string_view text);

/// The own share of `count` items in a row.
struct RankShare {
  Index begin = 0;
  Index end = 0;
};
RankShare share_of(const Ranks& ranks, Index count);

/// What all shares of a batch have together, and what stands in front of the own one.
struct RankTotals {
  double weight = 0;
  Index rows_before = 0;
};
RankTotals totals(Ranks& ranks, double weight, Index rows);

}  // namespace masque::train
