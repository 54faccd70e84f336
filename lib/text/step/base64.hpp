// Bytes as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace masque::text {

/// `bytes` in base64: groups of four characters, padded.
std::string encode_base64(std::string_view bytes);

/// The bytes of `text` in base64; nothing if it is not made of groups of four, padded at the end.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace masque::text
