#include "surgery/vocabulary/id_map.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::surgery {

IdMap::IdMap(const VocabularyChange& change, std::uint64_t rows)
    : after_(rows, VocabularyChange::kNew) {
  bool only_old = true;
  for (std::uint64_t id = 0; id < change.from.size(); ++id) {
    const std::uint64_t before = change.from[id];
    if (before == VocabularyChange::kNew) {
      only_old = false;
      continue;
    }
    MASQUE_CHECK(before < rows);
    if (after_[before] == VocabularyChange::kNew) {
      after_[before] = id;
    }
  }
  for (std::uint64_t id = 0; id < rows; ++id) identity_ = identity_ && after_[id] == id;
  permutation_ = only_old && change.from.size() == rows &&
                 std::ranges::find(after_, VocabularyChange::kNew) == after_.end();
}

std::optional<std::uint64_t> IdMap::after(std::uint64_t before) const {
  if (before >= after_.size()) return before;
  if (after_[before] == VocabularyChange::kNew) return std::nullopt;
  return after_[before];
}

}  // namespace masque::surgery
