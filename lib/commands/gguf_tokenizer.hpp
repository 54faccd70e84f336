// The tokenizer inside a model of llama.cpp.
#pragma once

#include <optional>
#include <string>

#include "text/tokenizer.hpp"

namespace masque::commands {

/// The tokenizer of the GGUF file that `path` stands for as a checkpoint, if that is a model of
/// llama.cpp; nothing for anything else. Throws InputError for a model of llama.cpp without a
/// tokenizer, or with one that is not read.
std::optional<text::Tokenizer> open_gguf_tokenizer(const std::string& path);

}  // namespace masque::commands
