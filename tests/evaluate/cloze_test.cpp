// Cloze patterns: where texts and words stand, as bytes and as tokens; examples that are drawn.
#include "evaluate/score/cloze.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "evaluate/score/few_shots.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

// A namespace of its own: files of a batch share their helpers.
namespace masque::evaluate::cloze_cases {
namespace {

using test::contains;
using test::message_of;

using Texts = std::vector<std::string>;
using Ids = std::vector<TokenId>;

constexpr TokenId kMask = 4;
constexpr const char* kTokens =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nit\nwas\ngood\nbad\n##ly\na\nb\nc\nd\n.\n";
enum : TokenId { kIt = 5, kWas, kGood, kBad, kLy, kA, kB, kC, kD, kDot };

const text::Tokenizer& cloze_tokenizer() {
  static const auto* tokenizer = [] {
    const test::TempFolder folder;
    test::write_file(folder / "vocab.txt", kTokens);
    return new text::Tokenizer(text::Tokenizer::open(folder / "vocab.txt"));
  }();
  return *tokenizer;
}

ClozeEncoder encoder(const std::string& pattern, ClozeOptions options = {}) {
  options.mask = kMask;
  return {cloze_tokenizer(), ClozePattern(pattern, "[MASK]"), options};
}

std::string usage(const std::string& pattern) {
  return message_of<UsageError>([&] { const ClozePattern made(pattern, "<mask>"); });
}

std::string labels_usage(const std::string& list) {
  return message_of<UsageError>([&] { parse_verbalizer(list); });
}

}  // namespace

TEST_CASE("places of texts and of the word") {
  const ClozePattern one("XML: X, [MASK] (aX X1 _X)", "");
  CHECK(one.texts() == 1);
  const auto filled = one.fill(Texts{"a [MASK] Y"}, "good");
  CHECK(filled.text == "XML: a [MASK] Y, good (aX X1 _X)");
  REQUIRE(filled.texts.size() == 1);
  CHECK(filled.texts[0] == text::Stretch{5, 15});
  CHECK(filled.word == text::Stretch{17, 21});
  const ClozePattern two("Y? <mask>, X", "<mask>");
  CHECK(two.texts() == 2);
  CHECK(two.fill(Texts{"first", "second"}, "yes").text == "second? yes, first");
  // A letter that is not ASCII does not join what stands next to it.
  CHECK(ClozePattern("电影X。[MASK]", "").fill(Texts{"a"}, "b").text == "电影a。b");
}

TEST_CASE("what is no pattern") {
  CHECK(contains(usage("X it was."), "no [MASK]"));
  CHECK(contains(usage("X [MASK] <mask>"), "several [MASK]"));
  CHECK(contains(usage("it was [MASK]."), "no X"));
  CHECK(contains(usage("X X [MASK]"), "several X"));
  CHECK(contains(usage("X Y Y [MASK]"), "several Y"));
  CHECK(contains(usage("Y [MASK]"), "no X"));
  CHECK(contains(usage(""), "no [MASK]"));
}

TEST_CASE("labels and their words") {
  const auto labels = parse_verbalizer("1=great|very good, 0 = terrible");
  REQUIRE(labels.size() == 2);
  CHECK(labels[0].name == "1");
  CHECK(labels[0].words == Texts{"great", "very good"});
  CHECK(labels[1].name == "0");
  CHECK(labels[1].words == Texts{"terrible"});
  CHECK(parse_verbalizer("great|good,bad")[0].name == "great");
  CHECK(parse_verbalizer("a=b=c,d")[0].words == Texts{"b=c"});
  CHECK(contains(labels_usage("great"), "one label"));
  CHECK(contains(labels_usage(""), "empty word"));
  CHECK(contains(labels_usage("a,"), "empty word"));
  CHECK(contains(labels_usage("a|,b"), "empty word"));
  CHECK(contains(labels_usage("=a,b"), "empty name"));
  CHECK(contains(labels_usage("x=a,x=b"), "the label 'x' occurs twice"));
  CHECK(contains(labels_usage("x=a,y=a"), "the word 'a' occurs twice"));
}

TEST_CASE("the word's tokens, one word of their own") {
  const ClozeEncoder made = encoder("X it was [MASK].");
  const ClozeSentence cloze = made.encode(Texts{"a b"}, "goodly bad", 0);
  CHECK(cloze.sentence.ids == Ids{2, kA, kB, kIt, kWas, kGood, kLy, kBad, kDot, 3});
  CHECK(cloze.begin == 5);
  CHECK(cloze.end == 8);
  const auto& words = cloze.sentence.words;
  CHECK(words[5] == words[7]);
  for (const std::size_t other : {1U, 2U, 3U, 4U, 8U}) CHECK(words[other] != words[5]);
  CHECK(made.encode(Texts{""}, "bad", 0).sentence.ids == Ids{2, kIt, kWas, kBad, kDot, 3});
}

TEST_CASE("words without tokens of their own, texts with a mask") {
  CHECK(contains(message_of([] { encoder("X good[MASK]").encode(Texts{"a"}, "xx", 0); }),
                 "'xx' shares the token '[UNK]' with the text next to it"));
  CHECK(encoder("X good[MASK]").encode(Texts{"a"}, "ly", 0).sentence.ids ==
        Ids{2, kA, kGood, kLy, 3});
  const ClozeEncoder made = encoder("X it was [MASK].");
  CHECK(contains(message_of([&] { made.encode(Texts{"a [MASK]"}, "bad", 0); }),
                 "the text has a [MASK]"));
  CHECK(made.encode_content_free("[MASK]", "bad", 0).sentence.ids ==
        Ids{2, kMask, kIt, kWas, kBad, kDot, 3});
  ClozeOptions plain;
  plain.sentence.special_in_text = false;
  // "[", "MASK" and "]" are words that the vocabulary lacks.
  CHECK(encoder("X it was [MASK].", plain).encode(Texts{"[MASK]"}, "bad", 0).sentence.ids ==
        Ids{2, 1, 1, 1, kIt, kWas, kBad, kDot, 3});
  CHECK(encoder("X it was [MASK].", plain).encode_content_free("[MASK]", "bad", 0).sentence.ids ==
        Ids{2, kMask, kIt, kWas, kBad, kDot, 3});
}

TEST_CASE("texts lose tokens, patterns do not") {
  using Kind = LengthPolicy::Kind;
  const auto ids = [](Kind kind, Index longest, const Texts& texts, const std::string& pattern,
                      Index room = 0) {
    return encoder(pattern, {.sentence = {}, .policy = {kind, 0}, .longest = longest, .mask = {}})
        .encode(texts, "bad", room);
  };
  const std::string pattern = "X it was [MASK].";
  CHECK(ids(Kind::kFirst, 8, {"a b c d"}, pattern).sentence.ids ==
        Ids{2, kA, kB, kIt, kWas, kBad, kDot, 3});
  const ClozeSentence last = ids(Kind::kLast, 8, {"a b c d"}, pattern);
  CHECK(last.sentence.ids == Ids{2, kC, kD, kIt, kWas, kBad, kDot, 3});
  CHECK(last.begin == 5);
  CHECK(last.end == 6);
  CHECK(last.sentence.words.size() == 8);
  CHECK(last.sentence.pieces[1] == "c");
  // Room for a longer word.
  CHECK(ids(Kind::kFirst, 8, {"a b c d"}, pattern, 3).sentence.ids ==
        Ids{2, kIt, kWas, kBad, kDot, 3});
  // In front of the text nothing moves.
  const ClozeSentence front = ids(Kind::kFirst, 5, {"a b c d"}, "[MASK]: X");
  CHECK(front.begin == 1);
  CHECK(front.sentence.ids == Ids{2, kBad, 1, kA, 3});
  // The longer of two first, of equal ones the second.
  CHECK(ids(Kind::kFirst, 6, {"a b c", "d"}, "X [MASK] Y").sentence.ids ==
        Ids{2, kA, kB, kBad, kD, 3});
  CHECK(ids(Kind::kFirst, 6, {"a b", "c d"}, "X [MASK] Y").sentence.ids ==
        Ids{2, kA, kB, kBad, kC, 3});
  CHECK(ids(Kind::kLast, 5, {"a b", "c d"}, "X [MASK] Y").sentence.ids == Ids{2, kB, kBad, kD, 3});
  CHECK(contains(message_of([&] { ids(Kind::kError, 8, {"a b c"}, pattern); }),
                 "9 tokens, expected at most 8"));
  CHECK(contains(message_of([&] { ids(Kind::kError, 9, {"a b c"}, pattern, 2); }),
                 "10 tokens, expected at most 9"));
  CHECK(contains(message_of([&] { ids(Kind::kFirst, 5, {"a b c"}, pattern); }),
                 "the pattern without its texts has 6 tokens, expected at most 5"));
}

TEST_CASE("records hide what the kind hides") {
  const ClozeSentence cloze = encoder("X [MASK].").encode(Texts{"a"}, "goodly", 0);
  const auto word = cloze_records(cloze, ScoreKind::kPllWordL2r, kMask);
  REQUIRE(word.size() == 2);
  CHECK(word[0].ids == Ids{2, kA, kMask, kMask, kDot, 3});
  CHECK(word[0].labels.values == Ids{-100, -100, kGood, -100, -100, -100});
  CHECK(word[1].ids == Ids{2, kA, kGood, kMask, kDot, 3});
  CHECK(word[1].labels.values == Ids{-100, -100, -100, kLy, -100, -100});
  CHECK(cloze_records(cloze, ScoreKind::kPll, kMask)[0].ids == Ids{2, kA, kMask, kLy, kDot, 3});
  const auto tta = cloze_records(cloze, ScoreKind::kTta, kMask);
  REQUIRE(tta.size() == 1);
  CHECK(tta[0].ids == cloze.sentence.ids);
  CHECK(tta[0].labels.values == Ids{-100, -100, kGood, kLy, -100, -100});
  CHECK_FALSE(has_cloze_records(ScoreKind::kCausal));
  CHECK_FALSE(has_cloze_records(ScoreKind::kElectra));
}

TEST_CASE("drawn texts: as many of each label, any of them, whatever else there is") {
  const auto labels = parse_verbalizer("x,y");
  const auto drawn = [&](std::uint64_t texts, Index count, std::uint64_t seed) {
    ShotSampler sampler(2, count, seed);
    for (std::uint64_t id = 0; id < texts; ++id)
      sampler.add({id, static_cast<Index>(id % 3 == 0), {std::to_string(id)}});
    std::vector<std::uint64_t> ids;
    for (const Shot& shot : sampler.drawn(labels)) {
      CHECK(shot.texts == Texts{std::to_string(shot.id)});
      CHECK(shot.label == static_cast<Index>(shot.id % 3 == 0));
      ids.push_back(shot.id);
    }
    CHECK(std::is_sorted(ids.begin(), ids.end()));
    return ids;
  };
  CHECK(drawn(30, 10, 1).size() == 20);
  CHECK(drawn(60, 5, 1) != drawn(60, 5, 2));
  // Each of 20 texts is drawn about as often as every other.
  std::vector<int> often(20);
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    ShotSampler sampler(2, 5, seed);
    for (std::uint64_t id = 0; id < 40; ++id) sampler.add({id, static_cast<Index>(id % 2), {}});
    for (const Shot& shot : sampler.drawn(labels)) {
      if (shot.label == 0) ++often[shot.id / 2];
    }
  }
  for (const int n : often) CHECK(std::abs(n - 150) < 50);  // 4.7 standard deviations
  CHECK(contains(message_of([&] { drawn(30, 11, 1); }),
                 "label 'y' has 10 texts, expected at least 11"));
}

}  // namespace masque::evaluate::cloze_cases
