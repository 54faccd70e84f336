// Maps old ids to new ids after a change of the vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// The new id of every old id. Immutable; does not refer to the change.
class IdMap {
 public:
  /// Of `change`, which takes rows from old ids below `rows`.
  IdMap(const VocabularyChange& change, std::uint64_t rows);

  /// The new id of the old id `before`: the first one if its row was copied, std::nullopt if its
  /// row was removed. Ids from `rows` on stay unchanged.
  std::optional<std::uint64_t> after(std::uint64_t before) const;
  /// Whether every row is still there, once, and none is new.
  bool is_permutation() const { return permutation_; }
  /// Whether every row keeps its id.
  bool is_identity() const { return identity_; }

 private:
  std::vector<std::uint64_t> after_;  ///< VocabularyChange::kNew: gone
  bool permutation_ = false;
  bool identity_ = true;
};

}  // namespace masque::surgery
