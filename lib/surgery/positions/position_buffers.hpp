// What old files keep next to a table of positions, and what limits texts to its length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/embedding_table.hpp"

namespace masque::surgery {

/// Gives the family's buffers that are stored for `before` rows a length of `after`. Throws
/// InputError if one holds anything but what its kind says.
void resize_position_buffers(CheckpointEdit& edit, const store::FamilyNames& family,
                             std::uint64_t before, std::uint64_t after,
                             std::vector<std::string>& notes);

/// Gives the slots that an optimizer keeps next to a table (optimizer_slots) one row for each of
/// `from`: the stored row of that number, or zeros for kComputedRow.
void move_slots(CheckpointEdit& edit, const store::TensorInfo& table,
                std::vector<std::uint64_t> from);

/// The same for `after` rows: those that they have, then zeros.
void resize_slots(CheckpointEdit& edit, const store::TensorInfo& table, std::uint64_t after);

/// Lets the limits of text length in the tokenizer's files follow: those that were the number of
/// positions are so again, those above it become it, lower ones stay with a note.
void resize_text_limits(CheckpointEdit& edit, std::uint64_t before, std::uint64_t after,
                        std::vector<std::string>& notes);

}  // namespace masque::surgery
