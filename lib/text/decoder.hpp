// Decoders of Hugging Face's tokenizer.json, one file each under text/decoder/.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace masque::text {

/// Turns tokens back into text: their concatenation afterwards. Immutable and thread-safe.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

/// A type of decoder.
struct DecoderKind {
  std::string_view name;  ///< its "type" in tokenizer.json
  /// Throws InputError with `path` and the place of a field of another kind.
  std::unique_ptr<Decoder> (*make)(const JsonValue& json, const std::string& path);
};

/// Adds a type at program start.
struct DecoderRegistration {
  explicit DecoderRegistration(const DecoderKind& kind);
};

/// The decoder of tokenizer.json. Throws InputError for an unknown type, by its name.
std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& path);

/// Every occurrence of `from`, which is not empty, from the left.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace masque::text
