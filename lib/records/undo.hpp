// Restores the record before its corruption, and counts what was corrupted.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

/// Restores ids from `original`, else from `labels`, then puts `dropped` tokens back by their
/// positions; removes what corruption added. Throws InputError if positions do not fit.
std::unique_ptr<Corruption> make_undo();

/// What the labels of records say about how they were made.
struct CorruptionStats {
  Tally tally;
  std::uint64_t remaining = 0;        ///< of tally.ordinary, those that were not dropped
  std::uint64_t replaced_labels = 0;  ///< ones, of records with `original` (ELECTRA)

  /// `kept` counts tokens that are what they were, however that came about.
  void see(const Record& record, const TokenTable& tokens);
  void add(const CorruptionStats& other);
};

/// χ² of counts against expected shares; nothing where none was expected and none found.
double chi_squared(const std::vector<std::uint64_t>& counts, const std::vector<double>& shares);

}  // namespace masque::records
