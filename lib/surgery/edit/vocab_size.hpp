// The size of the vocabulary in a folder's config.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/family_names.hpp"
#include "store/config.hpp"
#include "surgery/edit/checkpoint_edit.hpp"

namespace masque::surgery {

/// The members of config.json with the number of tokens, as `family` calls them; nullptr: unknown.
std::vector<std::string> vocab_size_fields(const model::FamilyNames* family);

/// Sets those of vocab_size_fields(`family`) that the folder's config has to `rows`, the rows of
/// the table, by `edit`. For each that was another number, `notes`, if not nullptr, get a note.
/// Nothing happens for a lone file. Returns whether the config has such a member, or there is no
/// config.
bool match_vocab_size(CheckpointEdit& edit, const model::FamilyNames* family, std::uint64_t rows,
                      std::vector<std::string>* notes);

/// The same with the input table of the checkpoint of `edit`, by the family of its `config`, adding
/// to `notes`. Nothing happens if there is no such table.
void match_vocab_size(CheckpointEdit& edit, const std::optional<store::ModelConfig>& config,
                      std::vector<std::string>& notes);

}  // namespace masque::surgery
