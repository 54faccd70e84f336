// A vocabulary after surgery: which row each id had before, and which token it has now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

/// New ids, one after the other.
struct VocabularyChange {
  /// In `from`: the new id has no row before.
  static constexpr std::uint64_t kNew = ~std::uint64_t{0};

  std::vector<std::uint64_t> from;  ///< new id → id before; kNew: its row is computed
  /// New id → its token; empty: none (rows that pad the table). As long as `from`.
  std::vector<std::string> tokens;
};

// The vocabulary of a checkpoint before a change.

/// What a plan starts from.
struct VocabularyState {
  const store::Checkpoint& checkpoint;  ///< before the change
  const TokenNames& names;              ///< may be empty()
  std::uint64_t rows = 0;               ///< of the tables
  std::vector<std::string>& notes;      ///< for people; plans add to them
};

}  // namespace masque::surgery
