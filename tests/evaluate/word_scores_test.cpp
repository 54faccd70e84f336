// Words: which tokens are theirs, what they sum to, and the correction for spaces in front of them,
// against brute force and against scripts/goldens/word_scores.py.
#include "evaluate/score/word_scores.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "fake_model.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using test::message_of;

const std::string kWords = std::string(MASQUE_TEST_DATA) + "/evaluate/words/";

/// Tokens with their spans and words, without a template.
struct Token {
  std::uint32_t begin, end;
  std::uint32_t word = text::kNoWord;
};

Sentence sentence(const std::vector<Token>& tokens, Index prefix = 0) {
  Sentence s;
  s.prefix = prefix;
  for (Index i = 0; i < prefix; ++i) {
    s.ids.push_back(1);
    s.spans.push_back({});
    s.words.push_back(text::kNoWord);
  }
  for (const Token& token : tokens) {
    s.ids.push_back(static_cast<TokenId>(2 + s.ids.size() % 9));
    s.spans.push_back({token.begin, token.end});
    s.words.push_back(token.word);
  }
  s.pieces.resize(s.ids.size());
  return s;
}

/// "text|first-end" of each word.
std::vector<std::string> shown(const Sentence& s, std::string_view text, WordUnit unit) {
  std::vector<std::string> out;
  for (const WordTokens& word : words_of(s, text, unit)) {
    out.push_back(std::string(text.substr(word.place.begin, word.place.end - word.place.begin)) +
                  "|" + std::to_string(word.begin) + "-" + std::to_string(word.end));
  }
  return out;
}

using Shown = std::vector<std::string>;

TEST_CASE("tokens belong to the first word that ends after they begin") {
  constexpr auto kSpace = WordUnit::kSpace;
  // "a  bc. " as GPT-2 has it, with and without the space in its spans.
  CHECK(shown(sentence({{0, 1}, {1, 2}, {2, 4}, {4, 5}, {5, 6}, {6, 7}}), "a  bc. ", kSpace) ==
        Shown{"a|0-1", "bc.|1-6"});
  CHECK(shown(sentence({{0, 1}, {2, 2}, {3, 4}, {4, 5}, {5, 6}, {7, 7}}, 2), "a  bc. ", kSpace) ==
        Shown{"a|0-1", "bc.|1-6"});
  // One token for two words; a word whose characters the tokenizer drops.
  CHECK(shown(sentence({{0, 3}, {4, 5}}), "a b c d", kSpace) ==
        Shown{"a|0-1", "b|1-1", "c|1-2", "d|2-2"});
  CHECK(shown(sentence({{0, 2}}), "  ", kSpace).empty());
  CHECK(shown(sentence({}), "", kSpace).empty());
  // No-break spaces and tabs are white space; a character may be several tokens.
  CHECK(shown(sentence({{0, 1}, {1, 3}, {3, 6}, {3, 6}, {6, 7}, {7, 8}}), "a\u00A0中\tb", kSpace) ==
        Shown{"a|0-1", "中|1-4", "b|4-6"});
}

TEST_CASE("pre-tokens are words, special tokens in the text, too") {
  constexpr auto kTokenizer = WordUnit::kTokenizer;
  CHECK(shown(sentence({{0, 2, 0}, {2, 4, 0}, {4, 5, 1}, {5, 8}, {8, 11}, {11, 12, 2}}, 1),
              "abcd.<s><s> ",
              kTokenizer) == Shown{"abcd|0-2", ".|2-3", "<s>|3-4", "<s>|4-5", "|5-6"});
  CHECK(shown(sentence({{0, 1, 0}, {1, 3, 1}, {3, 4, 1}}), "a bc", kTokenizer) ==
        Shown{"a|0-1", "bc|1-3"});
}

TEST_CASE("regions are runs of words with one label") {
  const std::vector<WordTokens> words =
      words_of(sentence({{0, 1}, {2, 3}, {4, 5}, {6, 7}, {7, 8}}), "a b c de", WordUnit::kSpace);
  const std::vector<Region> regions = regions_of(words, " x x  y x");
  REQUIRE(regions.size() == 3);
  CHECK(regions[0].label == "x");
  CHECK(regions[0].tokens.place == text::Stretch{0, 3});
  CHECK(regions[0].tokens.end == 2);
  CHECK(regions[2].label == "x");
  CHECK(regions[2].tokens.begin == 3);
  CHECK(regions[2].tokens.end == 5);
  CHECK(message_of([&] { regions_of(words, "x y"); }) ==
        "region labels: 2, expected 4, one for each word");
  CHECK(regions_of({}, "").empty());
}

ScoredSentence scored(const model::Model& model, ScoreOptions options, const Sentence& s) {
  ScoredSentence out;
  TextScorer scorer(model, options, [&](ScoredSentence&& one) { out = std::move(one); });
  scorer.add(0, s);
  scorer.flush();
  return out;
}

TEST_CASE("the probability of sets of tokens is that of their softmax, at every place") {
  const FakeModel model(model::HeadKind::kCausal, model::DefaultMask::kCausal);
  const Sentence s = sentence({{0, 1}, {1, 2}, {2, 3}, {3, 4}}, 1);
  ScoreOptions options{.kind = ScoreKind::kCausal};
  const auto plain = scored(model, options, s);
  CHECK(plain.sets.empty());
  options.sets = {{1, 0, 0, 1}, TokenSet(20, 1), {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1}};
  for (const Index batch : {1, 1000}) {
    options.batch_tokens = batch;
    const auto found = scored(model, options, s);
    CHECK(found.log_probabilities == plain.log_probabilities);
    CHECK(found.score == plain.score);
    CHECK(found.tokens == 4);
    REQUIRE(found.sets.size() == 15);
    for (Index place = 0; place <= 4; ++place) {
      const auto logits = fake_logits(s.ids, place, 12, [&](Index j) { return j <= place; });
      const auto p = [&](TokenId id) { return std::exp(log_softmax(logits, id)); };
      const double* sets = &found.sets[static_cast<std::size_t>(place) * 3];
      CHECK(sets[0] == doctest::Approx(std::log(p(0) + p(3))).epsilon(1e-12));
      CHECK(std::abs(sets[1]) < 1e-12);
      CHECK(sets[2] == doctest::Approx(std::log(p(2) + p(4) + p(11))).epsilon(1e-12));
    }
  }
  // Without a token in front nothing is known of the first place.
  const auto bare = scored(model, options, sentence({{0, 1}, {1, 2}}));
  REQUIRE(bare.sets.size() == 9);
  CHECK(std::isnan(bare.sets[0]));
  CHECK_FALSE(std::isnan(bare.sets[3]));
  CHECK_FALSE(std::isnan(bare.sets[6]));
  CHECK(scored(model, options, sentence({}, 1)).sets.size() == 3);
}

TEST_CASE("sets in windows are scored where their token is") {
  FakeModel model(model::HeadKind::kCausal, model::DefaultMask::kCausal);
  model.design_to_change().max_position_embeddings = 4;  // three tokens of text
  const Sentence s = sentence({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}, 1);
  ScoreOptions options{.kind = ScoreKind::kCausal, .policy = parse_length_policy("chunk")};
  options.sets = {{1, 1, 1}};
  const auto whole = scored(model, options, s);
  const auto first = scored(model, options, part_of(s, 0, 3));
  const auto second = scored(model, options, part_of(s, 3, 5));
  CHECK(whole.sets == std::vector<double>{first.sets[0], first.sets[1], first.sets[2],
                                          second.sets[0], second.sets[1], second.sets[2]});
  options.policy = parse_length_policy("first");
  const auto cut = scored(model, options, s);
  CHECK(cut.sets[2] == first.sets[2]);
  for (const std::size_t place : {3UL, 4UL, 5UL}) CHECK(std::isnan(cut.sets[place]));
}

TEST_CASE("a word has a score if all its tokens have") {
  ScoredSentence s;
  s.log_probabilities = {std::nullopt, -1.0, -2.5, -4.0};
  CHECK(word_score(s, {{}, 1, 3}, nullptr) == -3.5);
  CHECK_FALSE(word_score(s, {{}, 0, 2}, nullptr));
  CHECK_FALSE(word_score(s, {{}, 2, 2}, nullptr));
}

JsonValue golden() {
  return parse_json_file(read_text(kWords + "expected.json", 1 << 20), kWords + "expected.json");
}

double number(const JsonValue& value, std::string_view name) { return *value.find(name)->number(); }

/// Compares the words of all lines with those of the golden file.
void compare(const char* folder, ScoreKind kind, std::string_view name,
             const SpaceCorrection* correction) {
  const auto model = model::open_model(kWords + folder, {.precision = kernel::Precision::kF64});
  const text::Tokenizer tokenizer = text::Tokenizer::open(kWords + folder);
  ScoreOptions options{.kind = kind, .mask = tokenizer.roles().mask};
  if (correction != nullptr) options.sets = correction->sets();
  SentenceOptions encode;
  if (kind == ScoreKind::kCausal) encode.begin = begin_token(tokenizer);
  const JsonValue root = golden();
  const JsonValue& lines = *root.find("lines");
  const JsonValue& expected = *root.find(name);
  for (std::size_t i = 0; i < lines.items.size(); ++i) {
    const std::string& line = lines.items[i].text;
    CAPTURE(line);
    const Sentence s = encode_sentence(tokenizer, line, encode);
    const std::vector<WordTokens> words = words_of(s, line, WordUnit::kSpace);
    const ScoredSentence values = scored(*model, options, s);
    REQUIRE(words.size() == expected.items[i].items.size());
    for (std::size_t w = 0; w < words.size(); ++w) {
      const JsonValue& word = expected.items[i].items[w];
      CHECK(line.substr(words[w].place.begin, words[w].place.end - words[w].place.begin) ==
            word.text_of("text"));
      CHECK(static_cast<double>(words[w].end - words[w].begin) == number(word, "tokens"));
      CHECK(std::abs(*word_score(values, words[w], nullptr) - number(word, "log_probability")) <
            1e-5);
      if (correction != nullptr)
        CHECK(std::abs(*word_score(values, words[w], correction) - number(word, "corrected")) <
              1e-5);
    }
  }
}

TEST_CASE("words of GPT-2 and BERT are those of the published method") {
  const SpaceCorrection correction(text::Tokenizer::open(kWords + "gpt2"));
  compare("gpt2", ScoreKind::kCausal, "gpt2", &correction);
  compare("bert", ScoreKind::kPll, "pll", nullptr);
  compare("bert", ScoreKind::kPllWordL2r, "pll-word-l2r", nullptr);
}

TEST_CASE("corrected words add up to the probability of the text as words") {
  const text::Tokenizer tokenizer = text::Tokenizer::open(kWords + "gpt2");
  const auto model = model::open_model(kWords + "gpt2", {.precision = kernel::Precision::kF64});
  const SpaceCorrection correction(tokenizer);
  ScoreOptions options{.kind = ScoreKind::kCausal};
  options.sets = correction.sets();
  const auto sets = options.sets;
  REQUIRE(sets.size() == 2);
  CHECK(sets[0][0] == 1);  // the end of text
  CHECK(sets[1][0] == 1);
  for (std::size_t id = 1; id < sets[0].size(); ++id) CHECK(sets[0][id] + sets[1][id] == 1);
  // Where words begin with a space the corrections between them cancel; after a tab there is none.
  for (const std::string text : {"the cat  sat", " the\tcat sat ", "the\tcat"}) {
    CAPTURE(text);
    const Sentence s = encode_sentence(tokenizer, text, {.begin = begin_token(tokenizer)});
    const ScoredSentence values = scored(*model, options, s);
    double sum = 0;
    for (const WordTokens& word : words_of(s, text, WordUnit::kSpace))
      sum += *word_score(values, word, &correction);
    const double start = values.sets[text[0] == ' ' ? 0 : 1];
    const double end = values.sets[values.sets.size() - 2];
    CHECK(sum == doctest::Approx(values.score - start + end).epsilon(1e-12));
  }
  // A region is the sum of its words.
  const std::string text = "the cat sat";
  const Sentence s = encode_sentence(tokenizer, text, {.begin = begin_token(tokenizer)});
  const ScoredSentence values = scored(*model, options, s);
  const std::vector<WordTokens> words = words_of(s, text, WordUnit::kSpace);
  const auto regions = regions_of(words, "a b b");
  CHECK(*word_score(values, regions[1].tokens, &correction) ==
        doctest::Approx(*word_score(values, words[1], &correction) +
                        *word_score(values, words[2], &correction))
            .epsilon(1e-12));
  // Nothing is known of an end that was not read.
  options.policy = parse_length_policy("first");
  options.max_length = 1 + words[1].end;
  const ScoredSentence cut = scored(*model, options, s);
  CHECK(word_score(cut, words[0], &correction) == word_score(values, words[0], &correction));
  CHECK(word_score(cut, words[1], nullptr));
  CHECK_FALSE(word_score(cut, words[1], &correction));
  CHECK(message_of([] { SpaceCorrection(text::Tokenizer::open(kWords + "bert")); }) ==
        "the tokenizer does not mark the space before a word, expected one whose tokens begin with "
        "it (Ġ or ▁)");
}

}  // namespace
}  // namespace masque::evaluate
