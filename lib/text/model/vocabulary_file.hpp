// Files that hold a vocabulary: vocab.txt, vocab.json, merges.txt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/model/model.hpp"

namespace masque::text {

/// The lines of a vocab.txt; id = line number from 0.
struct VocabLines {
  std::vector<std::string> tokens;      ///< one for each line, empty ones too
  std::vector<std::size_t> duplicates;  ///< lines (from 0) whose token stands in a later line too
  std::vector<std::size_t> empty;       ///< empty lines (from 0)
};

/// Splits `text` at line feeds only and takes away one carriage return before each: U+0085, U+2028
/// and others can be tokens. A line feed at the end starts no further line. Throws InputError
/// naming `path`, and the line if one is not UTF-8, for another encoding, and for what is packed. A
/// byte-order mark is a part of the first token.
VocabLines read_vocab_txt(std::string_view text, const std::string& path);

/// Ids of a vocabulary are below: whoever keeps something for each id has memory for so many.
inline constexpr std::uint64_t kMostTokenIds = 1 << 24;

/// The tokens and ids of `text`, a JSON object of token: id, by ascending id. Throws InputError
/// naming `path` if it is no such object, an id is not below kMostTokenIds or occurs twice.
std::vector<VocabEntry> read_vocab_json(std::string_view text, const std::string& path);
/// The same of `json`, a value that was read from `path`.
std::vector<VocabEntry> vocab_of(const JsonValue& json, const std::string& path);

/// The lines "left right" of `text`; those that start with #version are dropped, wherever they
/// stand. Throws InputError naming `path` and the line if one is not UTF-8 or does not have exactly
/// one space between two tokens, and for a byte-order mark.
std::vector<std::pair<std::string, std::string>> read_merges_txt(std::string_view text,
                                                                 const std::string& path);

}  // namespace masque::text
