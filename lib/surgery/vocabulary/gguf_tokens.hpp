// The vocabulary that a GGUF file carries itself, as text for people and changed with the table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/rows/vocabulary_change.hpp"
#include "text/open/gguf_vocabulary.hpp"

namespace masque::surgery {

using text::gguf_token;
using text::plain_gguf_token;
using GgufToken = text::PieceType;  ///< by its number in tokenizer.ggml.token_type

/// Carries the `change` of a vocabulary of `rows` rows to the metadata of a GGUF file through
/// `edit`: tokens, their types and scores, the ids of special tokens, the size of the vocabulary.
/// Rows without a token are called "[PADn]", unused, as the converter does, but unused ones keep
/// another text; new tokens are normal ones for BERT, user-defined ones for others, with the lowest
/// existing score. Nothing happens where these are not there. Throws InputError if the row of a
/// special token is gone, or if a token that merges use would be renamed. Merges of removed tokens
/// go. Returns notes for people about these, and about other metadata with tokens that stays
/// unchanged.
std::vector<std::string> change_gguf_tokens(CheckpointEdit& edit, const VocabularyChange& change,
                                            std::uint64_t rows);

}  // namespace masque::surgery
