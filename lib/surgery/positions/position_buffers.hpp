// Buffers that old files store next to a table of positions, and limits of text length that depend
// on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/embedding_table.hpp"

namespace masque::surgery {

/// Gives the buffers of `family` that the checkpoint of `edit` stores for `before` rows a length of
/// `after`. One of another shape, or of a type that cannot hold its numbers, stays, with a note in
/// `notes`. Reads the buffers. Throws InputError if one holds anything but what its kind says.
void resize_position_buffers(CheckpointEdit& edit, const model::FamilyNames& family,
                             std::uint64_t before, std::uint64_t after,
                             std::vector<std::string>& notes);

/// Gives the slots in the checkpoint of `edit` that an optimizer keeps next to `table`
/// (optimizer_slots) one row for each of `from`: the stored row of that number, or zeros for
/// kComputedRow.
void move_slots(CheckpointEdit& edit, const store::TensorInfo& table,
                std::vector<std::uint64_t> from);

/// Gives the slots next to `table` in the checkpoint of `edit` `after` rows: the first ones that
/// they have, then zeros.
void resize_slots(CheckpointEdit& edit, const store::TensorInfo& table, std::uint64_t after);

/// Updates the limits of text length in the tokenizer's files of a folder (model_max_length of
/// tokenizer_config.json, the truncation of tokenizer.json, max_seq_length of
/// sentence_bert_config.json) through `edit`; all numbers are positions. A limit of `before`, or
/// above `after` if that is the smaller number, becomes `after`. A limit below `after` stays, with
/// a note in `notes`. Throws InputError if one of the files is no JSON.
void resize_text_limits(CheckpointEdit& edit, std::uint64_t before, std::uint64_t after,
                        std::vector<std::string>& notes);

}  // namespace masque::surgery
