// Where the ids of before are after a change of the vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// Immutable.
class IdMap {
 public:
  /// rows  ids before: those that the change takes rows from are below
  IdMap(const VocabularyChange& change, std::uint64_t rows);

  /// The id of a row now, the first one if it was copied; nothing if it is gone. Ids that were not
  /// below `rows` stay.
  std::optional<std::uint64_t> after(std::uint64_t before) const;
  /// Whether every row is still there, once, and none is new.
  bool is_permutation() const { return permutation_; }

 private:
  std::vector<std::uint64_t> after_;  ///< VocabularyChange::kNew: gone
  bool permutation_ = false;
};

}  // namespace masque::surgery
