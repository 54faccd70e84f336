// The decoders, one function for each type that tokenizer.json names. `path` is for messages: all
// throw InputError with it and the place of a field of another kind.
#pragma once

#include <string_view>

#include "text/decoder.hpp"

namespace masque::text {

/// "prefix" ("##") and "cleanup" (true).
std::unique_ptr<Decoder> make_word_piece_decoder(const JsonValue& json, const std::string& path);
/// No fields.
std::unique_ptr<Decoder> make_byte_level_decoder(const JsonValue& json, const std::string& path);
/// "replacement" ("▁"), not empty; "prepend_scheme", else "add_prefix_space" (true): whether the
/// first token loses it.
std::unique_ptr<Decoder> make_metaspace_decoder(const JsonValue& json, const std::string& path);
/// No fields.
std::unique_ptr<Decoder> make_byte_fallback_decoder(const JsonValue& json, const std::string& path);
/// No fields.
std::unique_ptr<Decoder> make_fuse_decoder(const JsonValue& json, const std::string& path);
/// "content", one character; "start" and "stop", how many of it go at most.
std::unique_ptr<Decoder> make_strip_decoder(const JsonValue& json, const std::string& path);
/// "pattern", as make_pattern reads it, and "content".
std::unique_ptr<Decoder> make_replace_decoder(const JsonValue& json, const std::string& path);
/// "suffix" ("</w>"), not empty.
std::unique_ptr<Decoder> make_bpe_decoder(const JsonValue& json, const std::string& path);
/// "decoders": what each of them says.
std::unique_ptr<Decoder> make_sequence_decoder(const JsonValue& json, const std::string& path);

/// Every occurrence of `from`, which is not empty, from the left.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace masque::text
