// The ids in the files of a checkpoint folder, after a change of the vocabulary.
#pragma once

#include <cstdint>
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
/// people: entries of lists whose tokens are gone, ids that are no row, what should be an id but is
/// none ("6"), and numbers, lists and objects that may hold ids or sizes and stay unchanged.
std::vector<std::string> change_config_ids(CheckpointEdit& edit, const model::FamilyNames* family,
                                           const VocabularyChange& change, std::uint64_t rows,
                                           const RoleIds& roles = {});

/// The ids below `rows` that config.json and generation_config.json of the folder of `checkpoint`
/// give to roles ("bos_token_id") and the like, each of which must have a token; empty for a lone
/// file. Throws InputError for a file that is no JSON.
std::vector<std::uint64_t> ids_named_by_configs(const store::Checkpoint& checkpoint,
                                                std::uint64_t rows);

// Maps old ids to new ids after a change of the vocabulary.

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
