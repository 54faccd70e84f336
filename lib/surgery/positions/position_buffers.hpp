// Buffers that old files store next to a table of positions, and limits of text length that depend
// on it.
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

/// Updates the limits of text length in the tokenizer's files. Limits equal to the old number of
/// positions, or above the new one, become the new number; lower ones stay, with a note.
void resize_text_limits(CheckpointEdit& edit, std::uint64_t before, std::uint64_t after,
                        std::vector<std::string>& notes);

}  // namespace masque::surgery
