// What several post-processors share.
#pragma once

#include "text/post_processor.hpp"

namespace masque::text {

/// A special token of BertProcessing and RobertaProcessing.
struct NamedToken {
  std::string token;  ///< its spelling
  TokenId id = 0;     ///< as the file says
};
/// The member `name` of `json`: ["token", id]. Throws InputError naming `path` for anything else.
NamedToken read_named_token(const JsonValue& json, std::string_view name, const std::string& path);

/// Moves the offsets of `encoding` past the spaces that byte-level tokens begin and end with; with
/// `add_prefix_space` not past a single one at the begin of the text.
void trim_byte_level_offsets(Encoding& encoding, bool add_prefix_space);

}  // namespace masque::text
