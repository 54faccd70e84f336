// A folder with a tokenizer as one input.
#pragma once

#include <array>
#include <filesystem>

#include "base/file/file.hpp"
#include "fuzz/fuzz.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {

inline constexpr std::array<const char*, 4> kTokenizerSettings = {
    "config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"};
inline constexpr std::array<const char*, 5> kTokenizerVocabularies = {
    "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "tokenizer.json"};

/// Writes the parts of the input, which have NULs between: settings, of which those without a text
/// are not there, then a vocabulary, of four kinds. Of an earlier input nothing stays.
inline void write_tokenizer(const std::string& folder, unsigned kind, std::string_view input) {
  for (const char* name : kTokenizerVocabularies) std::filesystem::remove(join(folder, name));
  InputParts parts(input);
  for (const char* name : kTokenizerSettings) {
    std::filesystem::remove(join(folder, name));
    if (const std::string_view text = parts.next(); !text.empty())
      write_file(join(folder, name), text);
  }
  switch (kind % 4) {
    case 0: write_file(join(folder, "vocab.txt"), parts.rest()); break;
    case 1:
      write_file(join(folder, "vocab.json"), parts.next());
      write_file(join(folder, "merges.txt"), parts.rest());
      break;
    case 2: write_file(join(folder, "spiece.model"), parts.rest()); break;
    default: write_file(join(folder, "tokenizer.json"), parts.rest()); break;
  }
}

}  // namespace masque::test
