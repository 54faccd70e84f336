// Pre-tokenizers of Hugging Face's tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/step/aligned_text.hpp"

namespace masque {
struct JsonValue;
}

namespace masque::text {

/// Splits text into words, and may rewrite them (byte-level characters, Metaspace). Immutable and
/// thread-safe.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  /// Replaces every one of `words` by the words that it splits into; empty ones are left out.
  /// `first` says whether words.front() begins at the very start of the user's text (Metaspace's
  /// scheme "first"). Throws InputError where a pattern exceeds its limits.
  virtual void split(std::vector<AlignedText>& words, bool first) const = 0;
};

/// The pre-tokenizer that `json`, of the tokenizer.json at `path`, describes; nullptr for null.
/// Throws InputError "path: pre-tokenizer 'X' is not supported", or what is wrong with which of its
/// fields.
std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& json,
                                                       const std::string& path);

}  // namespace masque::text
