// Models of llama.cpp as transformers would have them: the config from the metadata, the tensors by
// their names, layouts undone.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "store/checkpoint.hpp"
#include "store/config.hpp"

namespace masque::store {

/// The config.json of transformers that the metadata of `checkpoint` describe, if it is a model of
/// llama.cpp (has_gguf_names()); nothing otherwise. Reads small tensors (factors of rotary angles).
/// Throws InputError for an architecture whose models are not run, a key of the architecture that
/// is not known, and a value that no model has, by name.
std::optional<ModelConfig> gguf_config(const Checkpoint& checkpoint);

/// The tensors of `checkpoint`, a model of llama.cpp, by the names of transformers: as its config
/// says they lie, quantised ones as F32, decoded when they are read. Each has the name of the
/// tensor in the file that it is made of, or a part of: of two that are joined the first. The files
/// of `checkpoint` must outlive them. Throws InputError for an architecture whose models are not
/// run, for a tensor that it does not have, and for a type of blocks that is not decoded.
std::map<std::string, TensorInfo> gguf_tensors(const Checkpoint& checkpoint);

/// Whether the rows of `tensor`, one of gguf_tensors() of `checkpoint`, are the columns of what
/// transformers has: the matrices of GPT-2's layers.
bool is_transposed_in_gguf(const Checkpoint& checkpoint, const TensorInfo& tensor);

/// What llama.cpp calls the tensor that transformers calls `name` in `checkpoint`; `name` itself if
/// it is no model of llama.cpp.
std::string gguf_own_name(const Checkpoint& checkpoint, const std::string& name);

/// Whether `checkpoint` is a model of llama.cpp of one of these architectures.
bool runs_gguf(const Checkpoint& checkpoint);

}  // namespace masque::store
