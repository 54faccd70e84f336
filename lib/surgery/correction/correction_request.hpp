// The request of a correction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque::surgery {

/// What to do when the output head uses the input table.
enum class TiedPolicy {
  kUntie,   ///< the head gets its own copy of the old table
  kKeep,    ///< correct the shared table: the head changes too
  kRefuse,  ///< InputError
};

/// What to do with the rows of special tokens ([CLS] [SEP] [PAD] [MASK], begin and end of text).
enum class SpecialPolicy { kKeep, kCorrect };

struct CorrectionRequest {
  /// Shares that were given; absent ones are those of BERT, or of the marker when inverting.
  std::optional<double> rate;
  std::optional<double> mask;
  std::optional<double> keep;
  std::optional<double> random;
  std::optional<std::string> mask_token;    ///< token or id
  std::vector<std::string> special_tokens;  ///< tokens or ids, added to those of the tokenizer
  std::optional<std::string> mean;          ///< "vocab", "used" or "freq:FILE"
  SpecialPolicy special = SpecialPolicy::kKeep;
  std::optional<TiedPolicy> tied;  ///< absent: untie, or refuse where it cannot be determined
  std::optional<std::string> tensor;
  bool inverse = false;
  bool again = false;
  bool dry_run = false;
  bool verify = false;
  bool in_place = false;    ///< changes the input itself
  double wait_seconds = 0;  ///< in place: for other processes that change it
  store::WriteOptions write;
};

}  // namespace masque::surgery
