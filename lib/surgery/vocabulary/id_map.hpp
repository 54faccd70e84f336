// Maps old ids to new ids after a change of the vocabulary.
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

  /// The new id of an old id: the first one if its row was copied, std::nullopt if its row was
  /// removed. Ids from `rows` on stay unchanged.
  std::optional<std::uint64_t> after(std::uint64_t before) const;
  /// Whether every row is still there, once, and none is new.
  bool is_permutation() const { return permutation_; }

 private:
  std::vector<std::uint64_t> after_;  ///< VocabularyChange::kNew: gone
  bool permutation_ = false;
};

}  // namespace masque::surgery
