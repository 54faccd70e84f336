// Decoders of Hugging Face's tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json/json.hpp"

namespace masque::text {

/// Turns tokens back into text: their concatenation afterwards. Immutable and thread-safe.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  /// Rewrites `tokens` so that the text is what they are one after the other; there may be fewer
  /// then. Throws InputError where a text grows too much, or a pattern exceeds its limits.
  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

/// The decoder of the object `json` of tokenizer.json, which is the file `path`. Throws InputError
/// for an unknown type, by its name.
std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& path);

/// Who cleans up.
enum class CleanUp {
  kTokenizers,   ///< the "cleanup" of tokenizers, which also makes "don't" of "do not"
  kTransformers  ///< the clean_up_tokenization_spaces of transformers
};

/// Removes the spaces of `text` in front of punctuation and of English endings ("n't"), as `how`
/// does.
void clean_up_spaces(std::string& text, CleanUp how = CleanUp::kTokenizers);

}  // namespace masque::text
