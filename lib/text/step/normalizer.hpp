// Normalizers of Hugging Face's tokenizer.json.
#pragma once

#include <memory>
#include <string>

#include "text/step/aligned_text.hpp"

namespace masque {
struct JsonValue;
}

namespace masque::text {

/// Rewrites text. Immutable and thread-safe. Exactly as the class of the same `type` in Hugging
/// Face's tokenizers (0.23), alignment included.
class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  /// Rewrites `text`; the alignment follows. Throws InputError where a pattern exceeds its limits
  /// or a text grows too much (check_growth).
  virtual void apply(AlignedText& text) const = 0;
};

/// The normalizer that `json`, of the tokenizer.json at `path`, describes; nullptr for null. Throws
/// InputError "path: normalizer 'X' is not supported", or what is wrong with which of its fields.
std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& json, const std::string& path);

}  // namespace masque::text
