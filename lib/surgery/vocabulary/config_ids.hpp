// The ids in the files of a checkpoint folder, after a change of the vocabulary.
#pragma once

#include <string>
#include <vector>

#include "store/names/family.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// Updates the ids and sizes in config files through `edit` after the `change` of a vocabulary of
/// `rows` rows: vocab_size (as `family` calls it; nullptr: unknown) and every member `*_token_id`
/// of config.json and generation_config.json, number or list. Does nothing for a lone file. Throws
/// InputError if such a row is gone, or if positions follow an id that moves (RoBERTa's pad).
/// Returns notes for people: ids that are no row.
std::vector<std::string> change_config_ids(CheckpointEdit& edit, const store::FamilyNames* family,
                                           const VocabularyChange& change, std::uint64_t rows);

}  // namespace masque::surgery
