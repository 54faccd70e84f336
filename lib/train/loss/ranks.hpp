// Processes that train one model together, on one machine or many.
#pragma once

#include <span>
#include <string_view>

#include "base/string/name_table.hpp"
#include "base/types.hpp"

namespace masque::train {

/// In which numbers a sum of floats travels.
enum class SumPrecision {
  kF32,   ///< as they are
  kBf16,  ///< every rank's numbers and the sum are rounded to bfloat16; it is added up in float
};
/// "f32", "bf16".
NameTable<SumPrecision> sum_precision_names();

/// How Ranks::start_sum adds up.
struct SumOptions {
  SumPrecision precision = SumPrecision::kF32;  ///< in which the numbers travel
  /// Only own_part() becomes the sum; other numbers are undefined afterwards.
  bool own_part_only = false;
};

/// Each process, a rank, has all of the model and its own share of every batch. What they must
/// agree on are sums over all ranks, and all ranks ask for the same sums in the same order. For one
/// thread.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  /// Number of ranks, at least 1.
  virtual int count() const = 0;
  /// Number of this process, from 0 to less than count().
  virtual int rank() const = 0;
  /// `numbers` ← their sum over all ranks, added in the order of the ranks: the same bits
  /// everywhere and every time. All ranks call it with the same size, and wait for each other.
  virtual void sum(std::span<float> numbers) = 0;
  /// The same for `numbers` of type double.
  virtual void sum(std::span<double> numbers) = 0;

  /// Begins `numbers` ← their sum, as sum() has it, rounded as `options` say, and returns; it is
  /// there after finish(), and nobody may touch `numbers` before. All ranks begin the same sums and
  /// gathers in the same order between two calls of finish(); a sum() may come between them
  /// anywhere. Here: at once.
  virtual void start_sum(std::span<float> numbers, const SumOptions& options);
  /// Begins to give own_part() of `numbers` to all ranks, as start_sum(). Here: at once.
  virtual void start_gather(std::span<float> numbers);
  /// Waits for what was begun. Throws InputError for ranks that do not answer, and Interrupted if
  /// they do not after a signal, as sum() does; then this rank takes part in nothing any more.
  virtual void finish() {}
  /// Forgets what was begun: nothing touches its memory any more. Only for a rank that fails; it
  /// takes part in no sum any more.
  virtual void abandon() {}

  /// Whether this process is rank 0.
  bool is_first() const { return rank() == 0; }
};

/// Parts of what is summed begin at multiples of so many numbers.
inline constexpr Index kPartUnit = 16384;
/// Returns how many numbers `ranks` sum at a time: some 2^20, a multiple of kPartUnit for each.
Index bucket_size(const Ranks& ranks);

/// A process by itself: sums are what they are. Lives as long as the program.
Ranks& one_rank();

/// Returns what rank 0 of `ranks` gives as `value`. All ranks call it, as every function below that
/// takes `ranks` by reference to non-const.
double of_first(Ranks& ranks, double value);
/// Whether `value` is true on some of `ranks`.
bool any(Ranks& ranks, bool value);
/// Returns the `value` of the first of `ranks` that has another one than 0; 0: none has.
int of_any(Ranks& ranks, int value);
/// Throws InputError if `what`, described by `text`, is not the same on all `ranks`: compares 48
/// bits of a hash.
void check_alike(Ranks& ranks, std::string_view what, std::string_view text);

/// A rank's own share of some items: a run of them.
struct RankShare {
  Index begin = 0;  ///< first item
  Index end = 0;    ///< one after the last
};
/// Returns the share that this process of `ranks` has of `count` items: shares differ by at most
/// one item. Asks no other rank.
RankShare share_of(const Ranks& ranks, Index count);
/// Returns the part of `size` numbers, one bucket of bucket_size() or less, that rank `rank` of
/// `ranks` adds up: parts begin at multiples of kPartUnit; the last ones may be empty.
RankShare part_of(const Ranks& ranks, int rank, Index size);
/// Returns the part of `size` numbers that this process of `ranks` adds up: what
/// SumOptions::own_part_only and Ranks::start_gather mean.
inline RankShare own_part(const Ranks& ranks, Index size) {
  return part_of(ranks, ranks.rank(), size);
}

/// What all shares of a batch have together, and what stands in front of the own one.
struct RankTotals {
  double weight = 0;      ///< sum over all ranks
  Index rows_before = 0;  ///< rows of the ranks before this one
};
/// Returns the totals of `weight` and `rows`, which each of `ranks` gives of its own share.
RankTotals totals(Ranks& ranks, double weight, Index rows);

}  // namespace masque::train
