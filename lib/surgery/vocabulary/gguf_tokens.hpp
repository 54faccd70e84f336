// The vocabulary that a GGUF file carries itself, as text for people and changed with the table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// Kinds of tokens, by their numbers in tokenizer.ggml.token_type.
enum class GgufToken : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

/// The `token` of a file, of kind `type`, as BERT's vocab.txt has it. llama.cpp's converter leaves
/// control tokens, takes "##" off and writes U+2581 before any other one; earlier ones left every
/// "[…]" as it is, which is read so. Tokens of other models than "bert" (`model`, from
/// tokenizer.ggml.model) are the same in both.
std::string plain_gguf_token(std::string_view model, std::string_view token, GgufToken type);
/// The reverse of plain_gguf_token(): the token `plain` of kind `type` as a file of `model` has it.
std::string gguf_token(std::string_view model, std::string_view plain, GgufToken type);

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
