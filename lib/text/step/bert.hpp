// BERT's normalisation, with and without alignment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/step/aligned_text.hpp"

namespace masque::text {

/// The fields of BertNormalizer. In a tokenizer.json, a null strip_accents means that of lowercase.
struct BertOptions {
  bool clean_text = true;            ///< removes control characters; white space becomes U+0020
  bool handle_chinese_chars = true;  ///< puts spaces around Chinese characters
  bool strip_accents = true;         ///< NFD, then without marks
  bool lowercase = true;             ///< as lower()
};

/// Rewrites `text` as BertNormalizer with these `options`, in the order of its fields.
void bert_normalize(AlignedText& text, const BertOptions& options);

/// Rewrites `text` in lower case, character by character: the final sigma is no case of its own.
void lower(AlignedText& text);

/// BertNormalizer with `options` and then BertPreTokenizer, without alignment: `words` becomes the
/// words one after the other, word k ending at word_ends[k]. The text is valid UTF-8 below 1 GiB.
/// Several times as fast as the two steps, with their result for every text. Reuses the memory of
/// its outputs.
void bert_words(std::string_view text, const BertOptions& options, std::string& words,
                std::vector<std::uint32_t>& word_ends);

}  // namespace masque::text
