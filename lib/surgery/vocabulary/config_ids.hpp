// The ids in the files of a checkpoint folder, after a change of the vocabulary.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/family_names.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// The new id of the member `name` ("bos_token_id") of a configuration, whatever row it had;
/// nothing: it follows its row.
using RoleIds = std::function<std::optional<std::uint64_t>(std::string_view name)>;

/// Updates the ids and sizes in config files through `edit` after the `change` of a vocabulary of
/// `rows` rows.
///
/// Sizes: vocab_size (as `family` calls it; nullptr: unknown) is that of the table afterwards, even
/// if it was wrong before; also in a nested text_config.
///
/// Ids, in config.json (or bert_config.json), generation_config.json and the configurations of
/// processors, adapters and (without `roles`) the tokenizer, in nested objects too: the members
/// whose names a table knows (id_form_of() in config_ids.cpp). `roles`, if set, is asked first for
/// those of one id; of a role (kTokenRoles) that it does not know, and whose row is gone, the id
/// becomes null. An object with a vocab_size of its own describes another vocabulary and stays,
/// with a note.
///
/// Does nothing for a lone file. Throws InputError if the row of a single id is gone and `roles`
/// does not know it, or if positions follow an id that moves (RoBERTa's pad). Returns notes for
/// people: entries of lists whose tokens are gone, ids that are no row, and lists that may hold ids
/// and stay unchanged.
std::vector<std::string> change_config_ids(CheckpointEdit& edit, const model::FamilyNames* family,
                                           const VocabularyChange& change, std::uint64_t rows,
                                           const RoleIds& roles = {});

}  // namespace masque::surgery
