// The decoders, by type.
#pragma once

#include <string_view>

#include "text/decoder.hpp"

namespace masque::text {

std::unique_ptr<Decoder> make_word_piece_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_byte_level_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_metaspace_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_byte_fallback_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_fuse_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_strip_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_replace_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_bpe_decoder(const JsonValue& json, const std::string& path);
std::unique_ptr<Decoder> make_sequence_decoder(const JsonValue& json, const std::string& path);

/// Every occurrence of `from`, which is not empty, from the left.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace masque::text
