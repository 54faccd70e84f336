// Sentences: the template around the text, words, parts.
#include "evaluate/score/sentence.hpp"

#include <doctest/doctest.h>

namespace masque::evaluate {
namespace {

const std::string kTokenizers = MASQUE_TEST_DATA "/text/tokenizers/";

TEST_CASE("tokens of the template stand around the text and belong to no word") {
  const auto bert = text::Tokenizer::open(kTokenizers + "bert.json");
  const Sentence s = encode_sentence(bert, "the readers, in", {});
  CHECK(s.prefix == 1);
  CHECK(s.suffix == 1);
  CHECK(s.pieces.front() == "[CLS]");
  CHECK(s.pieces.back() == "[SEP]");
  CHECK(s.words.front() == text::kNoWord);
  CHECK(s.words.back() == text::kNoWord);
  CHECK(s.tokens() == s.size() - 2);
  // A word is what the pre-tokenizer cuts: four of them, whatever the number of pieces.
  CHECK(s.words[1] == 0);
  CHECK(s.words[static_cast<std::size_t>(s.size()) - 2] == 3);
  for (std::size_t i = 2; i + 1 < s.words.size(); ++i)
    CHECK((s.words[i] == s.words[i - 1]) == s.pieces[i].starts_with("##"));

  const Sentence part = part_of(s, 1, 2);
  CHECK(part.ids == std::vector<TokenId>{s.ids[0], s.ids[2], s.ids.back()});
  CHECK(part.tokens() == 1);
  CHECK(s.text_bytes == 15);
  CHECK(s.spans.size() == s.ids.size());
  CHECK(s.spans[1].begin == 0);
  CHECK(s.spans[s.spans.size() - 2].end == 15);
  CHECK(part.spans[1].begin == s.spans[2].begin);
  // Bytes, not characters.
  CHECK(encode_sentence(bert, "é a", {}).spans.end()[-2].begin == 3);
  CHECK(encode_sentence(bert, "", {}).tokens() == 0);
  CHECK(encode_sentence(bert, "", {.special = false}).size() == 0);
}

TEST_CASE("words of byte-level tokenizers end at punctuation") {
  const auto gpt2 = text::Tokenizer::open(kTokenizers + "gpt2.json");
  const Sentence s = encode_sentence(gpt2, "the in. the", {});
  CHECK(s.prefix == 0);
  CHECK(s.words.back() == 3);
}

TEST_CASE("a begin token is put where the template has none") {
  const auto gpt2 = text::Tokenizer::open(kTokenizers + "gpt2.json");
  const Sentence plain = encode_sentence(gpt2, "the in", {});
  const Sentence begun = encode_sentence(gpt2, "the in", {.begin = 7});
  CHECK(begun.prefix == 1);
  CHECK(begun.ids.front() == 7);
  CHECK(begun.tokens() == plain.tokens());
  CHECK(begun.pieces.size() == begun.ids.size());
  CHECK(begun.words.size() == begun.ids.size());
  const auto bert = text::Tokenizer::open(kTokenizers + "bert.json");
  CHECK(encode_sentence(bert, "the", {.begin = 7}).ids == encode_sentence(bert, "the", {}).ids);
}

}  // namespace
}  // namespace masque::evaluate
