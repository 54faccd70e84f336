// Normalizers of Hugging Face's tokenizer.json, which are under text/normalizer/.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/aligned_text.hpp"

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

class PartFields;

/// A type of normalizer.
struct NormalizerKind {
  std::string_view name;  ///< its "type" in tokenizer.json
  /// Makes it of its fields. Throws InputError that names the wrong one.
  std::shared_ptr<const Normalizer> (*make)(const PartFields& fields);
};

/// Adds a type at program start.
struct NormalizerRegistration {
  /// Copies `kind` into the registry of the process; its name must be of static lifetime.
  explicit NormalizerRegistration(const NormalizerKind& kind);
};

/// The normalizer that `json`, of the tokenizer.json at `path`, describes; nullptr for null. Throws
/// InputError "path: normalizer 'X' is not supported", or what is wrong with which of its fields.
std::shared_ptr<const Normalizer> make_normalizer(const JsonValue& json, const std::string& path);

}  // namespace masque::text
