// Pre-tokenizers of Hugging Face's tokenizer.json, one file each under text/pre_tokenizer/.
#pragma once

#include <vector>

#include "text/aligned_text.hpp"

namespace masque::text {

/// Splits text into words, and may rewrite them (byte-level characters, Metaspace). Immutable and
/// thread-safe.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  /// Replaces every word by the words that it splits into; empty ones are left out. `first` says
  /// whether words.front() begins at the very start of the user's text (Metaspace's scheme
  /// "first").
  virtual void split(std::vector<AlignedText>& words, bool first) const = 0;
};

}  // namespace masque::text
