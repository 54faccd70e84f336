// The tokenizer inside a GGUF file.
#pragma once

#include <vector>

#include "store/checkpoint.hpp"
#include "text/open/gguf_vocabulary.hpp"

namespace masque::store {

/// What the metadata of `checkpoint`, of GGUF files, say of its tokenizer; without tokens if they
/// have none. Throws InputError for a flag that is none.
text::GgufVocabulary gguf_vocabulary(const Checkpoint& checkpoint);

/// The metadata that say `vocabulary`: the other direction.
std::vector<TypedValue> gguf_tokenizer_metadata(const text::GgufVocabulary& vocabulary);

}  // namespace masque::store
