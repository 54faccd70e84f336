// What llama.cpp calls the parts of a model that surgery looks for, in tensors and metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/checkpoint.hpp"
#include "store/names/family.hpp"

namespace masque::store {

inline constexpr const char* kGgufArchitecture = "general.architecture";
inline constexpr const char* kGgufFileType = "general.file_type";
inline constexpr const char* kGgufTokens = "tokenizer.ggml.tokens";
inline constexpr const char* kGgufTokenTypes = "tokenizer.ggml.token_type";
inline constexpr const char* kGgufScores = "tokenizer.ggml.scores";
inline constexpr const char* kGgufMerges = "tokenizer.ggml.merges";

/// The tables by llama.cpp's names, which are the same for all its models: token_embd.weight,
/// position_embd.weight, token_types.weight, output.weight. Not one of family_names(): a model has
/// a family of its own, of which only these parts are known.
const FamilyNames& gguf_family();

/// Whether a checkpoint is of GGUF files and has the table of tokens by llama.cpp's name, quantised
/// or not.
bool has_gguf_names(const Checkpoint& checkpoint);

/// What llama.cpp does without an output.weight.
enum class GgufHead {
  kTied,     ///< it takes the table of tokens
  kNone,     ///< it has no head: an encoder
  kUnknown,  ///< no architecture is named, or the file is a part of a model
};
GgufHead gguf_head(const Checkpoint& checkpoint);

/// What general.file_type calls a file whose values are of one type; nothing if it has no number.
std::optional<std::uint64_t> gguf_file_type(DType dtype);

/// Throws InputError if a file is one of the parts of a split model: what the other parts have to
/// follow is not done to one alone.
void check_whole_gguf(const Checkpoint& checkpoint);

/// A metadata value of the first file that has it; nullptr if none has.
const TypedValue* find_gguf_value(const Checkpoint& checkpoint, std::string_view key);

/// A size that the architecture's name precedes: "bert.context_length"; nullptr if there is none.
const TypedValue* find_gguf_size(const Checkpoint& checkpoint, std::string_view name);

}  // namespace masque::store
