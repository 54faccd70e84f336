// What llama.cpp calls the parts of a model that surgery looks for, in tensors and metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/checkpoint.hpp"

namespace masque::store {

/// The key of llama.cpp's name of the architecture: a STRING.
inline constexpr const char* kGgufArchitecture = "general.architecture";
/// The key of the number of the type that most tensors have: see gguf_file_type.
inline constexpr const char* kGgufFileType = "general.file_type";
/// The key of the tokens by id: a STRING[].
inline constexpr const char* kGgufTokens = "tokenizer.ggml.tokens";
/// The key of the types of tokens by id: an INT32[].
inline constexpr const char* kGgufTokenTypes = "tokenizer.ggml.token_type";
/// The key of the scores of tokens by id: a FLOAT32[].
inline constexpr const char* kGgufScores = "tokenizer.ggml.scores";
/// The key of the merges of BPE: a STRING[].
inline constexpr const char* kGgufMerges = "tokenizer.ggml.merges";

/// The table of tokens.
inline constexpr const char* kGgufTokenTable = "token_embd.weight";

/// Whether `checkpoint` is of GGUF files and has the table of tokens by llama.cpp's name, quantised
/// or not.
bool has_gguf_names(const Checkpoint& checkpoint);

/// Why `checkpoint` cannot be trained or grown, for messages, if it has_gguf_names() and thus no
/// config.json that fits; empty otherwise.
std::string gguf_problem(const Checkpoint& checkpoint);

/// What llama.cpp does without an output.weight.
enum class GgufHead {
  kTied,     ///< it takes the table of tokens
  kNone,     ///< it has no head: an encoder
  kUnknown,  ///< no architecture is named, or the file is a part of a model
};
/// What llama.cpp does with `checkpoint`, by its architecture, if it has no output.weight.
GgufHead gguf_head(const Checkpoint& checkpoint);

/// The number that general.file_type has for a file whose values are all of the type `dtype`;
/// nothing if there is none.
std::optional<std::uint64_t> gguf_file_type(DType dtype);

/// Throws InputError if `checkpoint` is one part of a split model, without the others.
void check_whole_gguf(const Checkpoint& checkpoint);

/// Throws InputError if `checkpoint` is a part of a split model, or all of its parts: what the
/// others have to follow is not done to one alone.
void check_one_gguf(const Checkpoint& checkpoint);

/// The metadata value under `key` of the first file of `checkpoint` that has it; nullptr if none
/// has. It lives as long as the checkpoint.
const TypedValue* find_gguf_value(const Checkpoint& checkpoint, std::string_view key);

/// The metadata value of `checkpoint` under `name` after the architecture's name and a dot:
/// "bert.context_length"; nullptr if there is none. It lives as long as the checkpoint.
const TypedValue* find_gguf_size(const Checkpoint& checkpoint, std::string_view name);

}  // namespace masque::store
