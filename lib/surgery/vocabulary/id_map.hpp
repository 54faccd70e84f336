// Where the ids of before are after a change of the vocabulary.
#pragma once

#include <optional>
#include <vector>

#include "store/names/family.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
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

/// What a config says about ids, for the new ones: vocab_size (as the family calls it) and every
/// member `*_token_id` of config.json and generation_config.json, number or list. Only of a folder.
/// Throws InputError if such a row is gone, or if positions follow an id that moves (RoBERTa's
/// pad). Returns notes.
std::vector<std::string> change_config_ids(CheckpointEdit& edit, const store::FamilyNames* family,
                                           const VocabularyChange& change, std::uint64_t rows);

}  // namespace masque::surgery
