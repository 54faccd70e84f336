// Normalizers of Hugging Face's tokenizer.json, one file each under text/normalizer/.
#pragma once

#include <memory>

#include "text/aligned_text.hpp"

namespace masque::text {

/// Rewrites text. Immutable and thread-safe. Exactly as the class of the same `type` in Hugging
/// Face's tokenizers (0.23), alignment included.
class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  virtual void apply(AlignedText& text) const = 0;
};

}  // namespace masque::text
