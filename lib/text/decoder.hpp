// Decoders of Hugging Face's tokenizer.json, one file each under text/decoder/.
#pragma once

#include <memory>
#include <string>
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

/// The decoder of tokenizer.json. Throws InputError for an unknown type, by its name.
std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& path);

}  // namespace masque::text
