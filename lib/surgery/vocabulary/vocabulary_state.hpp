// The vocabulary of a checkpoint before a change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

/// What a plan starts from.
struct VocabularyState {
  const store::Checkpoint& checkpoint;  ///< before the change
  const TokenNames& names;              ///< may be empty()
  std::uint64_t rows = 0;               ///< of the tables
  std::vector<std::string>& notes;      ///< for people; plans add to them
};

}  // namespace masque::surgery
