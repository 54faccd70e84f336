// The models against plain second implementations, on small random vocabularies.
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "support/naive_models.hpp"

namespace masque::text {
namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) { return random() % n; }

std::string word_of(Random& random, std::size_t most) {
  static const std::vector<std::string> kCharacters = {"a",      "b",      "c",      "#",
                                                       "\u00E9", "\u0301", "\u4E2D", "\U0001F600"};
  const std::size_t kinds = 2 + below(random, kCharacters.size() - 1);
  std::string out;
  for (std::size_t n = 1 + below(random, most); n > 0; --n)
    out += kCharacters[below(random, kinds)];
  return out;
}

std::vector<std::string> tokens_of(Random& random) {
  std::set<std::string> out;
  for (std::size_t n = 5 + below(random, below(random, 10) == 0 ? 500 : 40); n > 0; --n) {
    out.insert((below(random, 2) == 0 ? "##" : "") + word_of(random, 4));
  }
  std::vector<std::string> shuffled(out.begin(), out.end());
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  return shuffled;
}

std::vector<Piece> pieces_of(const TokenModel& model, const std::string& word) {
  std::vector<Piece> out;
  model.tokenize(word, out);
  return out;
}

std::vector<TokenId> ids_of(const std::vector<Piece>& pieces) {
  std::vector<TokenId> out;
  for (const Piece& piece : pieces) out.push_back(piece.id);
  return out;
}

TEST_CASE("WordPiece is the greedy longest match, on random vocabularies") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> tokens = tokens_of(random);
    tokens.push_back("[UNK]");
    WordPieceOptions options;
    options.max_input_chars_per_word = below(random, 2) == 0 ? 100 : 6;
    options.overlong_may_be_token = below(random, 2) == 0;
    if (below(random, 4) == 0) options.continuing_subword_prefix = "";
    const auto vocab = numbered(tokens);
    const auto model = make_wordpiece(tokens, options);
    CHECK(model->size() == tokens.size());
    for (int i = 0; i < 20; ++i) {
      const std::string word = word_of(random, 9);
      CAPTURE(word);
      CHECK(pieces_of(*model, word) == test::naive_wordpiece(vocab, options, word));
    }
    for (const VocabEntry& entry : vocab) {
      CHECK(model->find(entry.first) == entry.second);
      CHECK(model->token(entry.second) == entry.first);
    }
    CHECK(model->find("no such token") == std::nullopt);
    CHECK(model->token(static_cast<TokenId>(tokens.size())).empty());
    CHECK(model->token(-1).empty());
  }
}

TEST_CASE("BPE merges by rank and place, for short and long words") {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c", "\u00E9"};
    std::set<std::string> seen(tokens.begin(), tokens.end());
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 60; ++i) {
      const std::string left = tokens[below(random, tokens.size())];
      const std::string right = tokens[below(random, tokens.size())];
      if (!seen.insert(left + right).second) continue;
      merges.emplace_back(left, right);
      tokens.push_back(left + right);
    }
    const auto vocab = numbered(tokens);
    const auto model = make_bpe(vocab, merges, {}, "test");
    for (const std::size_t most : {8U, 40U, 300U}) {
      const std::string word = word_of(random, most);
      CAPTURE(word);
      CHECK(pieces_of(*model, word) == test::naive_bpe(vocab, merges, word));
    }
  }
}

// Merges that reach far: whole blocks have to be merged again.
TEST_CASE("BPE makes the ids of a long word in blocks") {
  Random random(4);
  int in_blocks = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<std::string> tokens = {"a", "b", "\u00E9"};
    std::set<std::string> seen(tokens.begin(), tokens.end());
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 40; ++i) {
      const std::string left = tokens[below(random, tokens.size())];
      const std::string right = tokens[below(random, tokens.size())];
      if (left.size() + right.size() > 60 || !seen.insert(left + right).second) continue;
      merges.emplace_back(left, right);
      tokens.push_back(left + right);
    }
    tokens.push_back("<unk>");
    BpeOptions options;
    if (round % 2 == 0) options.unk_token = "<unk>";
    options.fuse_unk = round % 4 == 0;
    const auto model = make_bpe(numbered(tokens), merges, options, "test");
    std::string word;
    const std::size_t repeated = 1 + below(random, 5);
    for (std::size_t n = 0; n < 50'000; ++n) {
      const std::string part = word_of(random, repeated);
      for (std::size_t times = round < 6 ? 1 : below(random, 9); times > 0; --times) word += part;
    }
    if (round % 3 == 0) word = std::string((1 << 17) + 1, 'a') + word;
    std::vector<TokenId> whole = ids_of(pieces_of(*model, word));
    std::vector<TokenId> ids = {7};
    const bool done = model->append_ids(word, ids);
    in_blocks += done ? 1 : 0;
    whole.insert(whole.begin(), 7);
    if (!done) whole.resize(1);
    CHECK(ids == whole);
  }
  CHECK(in_blocks > 3);
}

TEST_CASE("Unigram finds the best score") {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<ScoredPiece> pieces = {{"<unk>", -1}};
    for (const std::string& token : tokens_of(random)) {
      pieces.push_back({token, -static_cast<double>(below(random, 1000)) / 64});
    }
    const auto model = make_unigram(pieces, {0}, "test");
    for (int i = 0; i < 10; ++i) {
      const std::string word = word_of(random, 20);
      CAPTURE(word);
      // The scores are multiples of 1/64: their sums are exact.
      double least = 0;
      for (const ScoredPiece& piece : pieces) least = std::min(least, piece.score);
      double score = 0;
      std::size_t at = 0;
      for (const Piece& piece : pieces_of(*model, word)) {
        CHECK(piece.begin == at);
        at = piece.end;
        const std::string part = word.substr(piece.begin, piece.end - piece.begin);
        score += piece.id == 0
                     ? (least - 10) * static_cast<double>(test::characters_of(part).size())
                     : pieces[static_cast<std::size_t>(piece.id)].score;
      }
      CHECK(at == word.size());
      CHECK(score == test::naive_unigram_score(pieces, word));
      std::vector<TokenId> ids;
      CHECK(model->append_ids(word, ids));
      CHECK(ids == ids_of(pieces_of(*model, word)));
    }
  }
}

// In quadratic time each would take hours.
TEST_CASE("words of a megabyte are encoded") {
  std::vector<std::string> tokens = {"[UNK]", "a"};
  std::vector<std::pair<std::string, std::string>> merges;
  for (int i = 0; i < 10; ++i) {
    merges.emplace_back(tokens.back(), tokens.back());
    tokens.push_back(tokens.back() + tokens.back());
  }
  const std::string word(1 << 20, 'a');
  CHECK(pieces_of(*make_bpe(numbered(tokens), merges, {}, "test"), word).size() == 1024);
  std::vector<ScoredPiece> pieces;
  for (const std::string& token : tokens) {
    pieces.push_back({token, -1});
    if (pieces.size() == 1) pieces[0].type = PieceType::kUnknown;
  }
  CHECK(pieces_of(*make_unigram(pieces, {0}, "test"), word).size() == 1024);
  CHECK(pieces_of(*make_sentencepiece_bpe(pieces, 0, false, "test"), word).size() == 1024);
  WordPieceOptions options;
  CHECK(pieces_of(*make_wordpiece(tokens, options), word).size() == 1);
  options.max_input_chars_per_word = 1 << 21;
  options.continuing_subword_prefix = "";
  CHECK(pieces_of(*make_wordpiece(tokens, options), word).size() == 1024);
}

TEST_CASE("simple models, and words without tokens") {
  const auto bytes = make_bytes(3);
  CHECK(bytes->size() == 259);
  CHECK(bytes->count() == 256);
  CHECK(pieces_of(*bytes, "\u00E9") == std::vector<Piece>{{3 + 0xC3, 0, 1}, {3 + 0xA9, 1, 2}});
  CHECK(bytes->token(3 + 'a') == "a");
  CHECK(bytes->token(2).empty());
  CHECK(bytes->find("a") == 3 + 'a');
  CHECK(bytes->find("ab") == std::nullopt);
  const auto characters = make_characters(numbered({"<unk>", "a", "\u4E2D"}), "<unk>");
  CHECK(pieces_of(*characters, "a\u4E2Db") == std::vector<Piece>{{1, 0, 1}, {2, 1, 4}, {0, 4, 5}});
  CHECK(pieces_of(*make_characters(numbered({"a"}), std::nullopt), "ba") ==
        std::vector<Piece>{{0, 1, 2}});
  const auto words = make_word_level({{"b", 9}, {"a", 4}}, "none");
  CHECK(words->size() == 10);
  CHECK(words->count() == 2);
  CHECK(pieces_of(*words, "b") == std::vector<Piece>{{9, 0, 1}});
  CHECK(test::contains(test::message_of([&] { pieces_of(*words, "c"); }), "unknown token none"));
  for (const auto& model : {bytes, characters, words}) CHECK(pieces_of(*model, "").empty());
  CHECK(pieces_of(*make_wordpiece(std::vector<std::string>{"a"}, {}), "").empty());
  CHECK(pieces_of(*make_bpe({}, {}, {}, "test"), "").empty());
  CHECK(pieces_of(*make_unigram({}, {}, "test"), "").empty());
}

TEST_CASE("of equal tokens the last has the id") {
  const auto model = make_wordpiece(std::vector<std::string>{"a", "b", "a", "[UNK]"}, {});
  CHECK(model->find("a") == 2);
  CHECK(model->token(0).empty());
  CHECK(model->token(2) == "a");
  CHECK(model->size() == 4);
  CHECK(model->count() == 3);
}

}  // namespace
}  // namespace masque::text
