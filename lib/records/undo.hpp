// Restores the record before its corruption, and counts what was corrupted.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

/// Restores ids from `original`, else from `labels`, then puts `dropped` tokens back by their
/// positions; removes what corruption added. Throws InputError if positions do not fit.
std::unique_ptr<Corruption> make_undo();

/// What the labels of records say about how they were made.
struct CorruptionStats {
  Tally tally;                        ///< counts of the records that were seen
  std::uint64_t remaining = 0;        ///< of tally.ordinary, those that were not dropped
  std::uint64_t replaced_labels = 0;  ///< ones, of records with `original` (ELECTRA)

  /// Counts `record`, whose special and mask tokens are those of `tokens`. `kept` counts tokens
  /// that are what they were, however that came about.
  void see(const Record& record, const TokenTable& tokens);
  /// Adds the counts of `other`.
  void add(const CorruptionStats& other);
};

/// Pearson's test of counts against expected shares.
struct ChiSquared {
  double statistic = 0;  ///< Σ (count − expected)² / expected; infinite: a count has the share 0
  int degrees = 0;       ///< of freedom: shares above 0, minus 1
  double p = 1;          ///< of a statistic as large or larger; 1 without degrees of freedom
};
/// Tests `counts` against expected `shares` of their sum, as many as counts.
ChiSquared chi_squared(const std::vector<std::uint64_t>& counts, const std::vector<double>& shares);
/// The probability that χ² with `degrees` ≥ 1 degrees of freedom is `statistic` ≥ 0 or larger: the
/// regularised incomplete gamma function Q(degrees / 2, statistic / 2), as a finite sum.
double chi_squared_tail(double statistic, int degrees);

}  // namespace masque::records
