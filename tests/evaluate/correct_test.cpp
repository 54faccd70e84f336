// Words and their replacements against brute force; counts of corrections.
#include "evaluate/write/correct.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/random/random.hpp"
#include "evaluate/score/word_error_rate.hpp"
#include "evaluate/write/threshold_search.hpp"
#include "fake_model.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

using model::HeadKind;

constexpr Index kVocabulary = 12;  // of a FakeModel
constexpr TokenId kMask = 4;
constexpr const char* kTokens =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\ncat\nact\n##c\nabd\n.\nat\n";
constexpr TokenId kAb = 5, kCat = 6, kAct = 7, kC = 8, kAbd = 9, kDot = 10, kAt = 11;

class Words {
 public:
  explicit Words(const std::string& file = kTokens, const std::string& name = "vocab.txt") {
    const std::string path = folder_ / name;
    test::write_file(path, file);
    tokenizer_.emplace(text::Tokenizer::open(path));
  }

  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  Line line(const std::string& text) const {
    return {text, encode_sentence(*tokenizer_, text, {})};
  }

 private:
  test::TempFolder folder_;
  std::optional<text::Tokenizer> tokenizer_;
};

/// log p of a token at a place; `others`: read by a T-TA.
double log_probability(const std::vector<TokenId>& ids, Index place, TokenId token, bool others) {
  return log_softmax(
      fake_logits(ids, place, kVocabulary, [&](Index j) { return !others || j != place; }), token);
}

std::shared_ptr<const records::ConfusionSets> sets(const std::string& text) {
  return std::make_shared<const records::ConfusionSets>(
      records::ConfusionSets::parse(text, "sets"));
}

constexpr const char* kAdded = R"("added_tokens": [
  {"id": 0, "content": "[PAD]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
  {"id": 1, "content": "[UNK]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
  {"id": 4, "content": "[MASK]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}])";

/// Byte-level BPE without merges that matter.
std::string byte_level_tokenizer() {
  return std::string(R"({"version": "1.0", )") + kAdded + R"x(, "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "ignore_merges": true, "unk_token": "[UNK]", "vocab": {"[PAD]": 0, "[UNK]": 1, "act": 2, "cat": 3, "[MASK]": 4,
      "Ġcat": 5, "ct": 6, "Ã": 7, "aÃ": 8, "ĠaÃ": 9, "Ġ": 10, ".": 11}, "merges": []}})x";
}

/// Unigram with a mark of spaces; NFKC, and white space is one space.
std::string metaspace_tokenizer(const std::string& split) {
  return std::string(R"({"version": "1.0", )") + kAdded + R"x(, "normalizer": {"type": "Sequence",
      "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}]},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": )x" +
         split + R"x(},
    "post_processor": null, "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
    "model": {"type": "Unigram", "unk_id": 1, "vocab": [["[PAD]", 0], ["[UNK]", 0], ["▁cat", -1],
      ["▁act", -1], ["[MASK]", 0], ["▁", -5], [".", -5], ["1", -5], ["2", -5], ["3", -5], ["4", -5], ["5", -5]]}})x";
}

FakeModel masked() { return FakeModel(HeadKind::kMasked); }

}  // namespace

TEST_CASE("a word of one piece: hidden, against all words of the vocabulary") {
  const Words words;
  const FakeModel model = masked();
  const Corrector corrector(model, words.tokenizer(), {.mask = kMask});
  const auto checked = corrector.check(std::vector{words.line("Cat . at")});
  REQUIRE(checked[0].size() == 2);  // "." has no letter
  std::vector<TokenId> ids{2, kMask, 10, kAt, 3};
  CHECK(checked[0][0].log_probability == doctest::Approx(log_probability(ids, 1, kCat, false)));
  double most = -1e9;
  TokenId best = 0;
  for (const TokenId id : {kAb, kAct, kAbd, kAt}) {  // neither "##c" nor "." nor special tokens
    const double value = log_probability(ids, 1, id, false);
    if (value > most) best = id;
    most = std::max(most, value);
  }
  CHECK(checked[0][0].replacement_log_probability == doctest::Approx(most));
  std::string text(words.tokenizer().token(best));
  text[0] = static_cast<char>(text[0] - 32);  // the word had a capital
  CHECK(checked[0][0].replacement == text);
  CHECK(checked[0][0].gain() == doctest::Approx(most - log_probability(ids, 1, kCat, false)));
  CHECK(checked[0][1].span == text::Span{6, 8});
}

TEST_CASE("a word of several pieces: each hidden with those after it, and one token for all") {
  const Words words;
  const FakeModel model = masked();
  const Corrector corrector(model, words.tokenizer(),
                            {.mask = kMask, .edit_distance = 1, .edit_cost = 0.25});
  const auto checked = corrector.check(std::vector{words.line("at abc cat")});
  REQUIRE(checked[0].size() == 3);
  const double own = log_probability({2, kAt, kMask, kMask, kCat, 3}, 2, kAb, false) +
                     log_probability({2, kAt, kAb, kMask, kCat, 3}, 3, kC, false);
  CHECK(checked[0][1].log_probability == doctest::Approx(own));
  const std::vector<TokenId> hidden{2, kAt, kMask, kCat, 3};
  const double ab = log_probability(hidden, 2, kAb, false);
  const double abd = log_probability(hidden, 2, kAbd, false);
  CHECK(checked[0][1].replacement == (ab > abd ? "ab" : "abd"));
  CHECK(checked[0][1].replacement_log_probability == doctest::Approx(std::max(ab, abd)));
  CHECK(checked[0][1].gain() == doctest::Approx(std::max(ab, abd) - 0.25 - own));
  // One edit: "cat" is a swap away from "act", a deletion from "at".
  CHECK((checked[0][2].replacement == "act" || checked[0][2].replacement == "at"));
}

TEST_CASE("one pass gives what a T-TA says of every token given the others") {
  const Words words;
  const FakeModel model(HeadKind::kMasked, model::DefaultMask::kOthers);
  const Corrector corrector(model, words.tokenizer(), {.one_pass = true, .mask = kMask});
  const auto checked = corrector.check(std::vector{words.line("at abc cat")});
  CHECK(model.runs == 1);
  const std::vector<TokenId> ids{2, kAt, kAb, kC, kCat, 3};
  CHECK(checked[0][0].log_probability == doctest::Approx(log_probability(ids, 1, kAt, true)));
  CHECK(checked[0][1].log_probability ==
        doctest::Approx(log_probability(ids, 2, kAb, true) + log_probability(ids, 3, kC, true)));
  double most = -1e9;
  for (const TokenId id : {kAb, kAct, kAbd, kCat})
    most = std::max(most, log_probability(ids, 1, id, true));
  CHECK(checked[0][0].replacement_log_probability == doctest::Approx(most));
}

TEST_CASE("confusions may have any number of pieces, and no other word is looked at") {
  const Words words;
  const FakeModel model = masked();
  CorrectOptions options{.mask = kMask};
  options.confusions = sets("cat\tabc\tact\n");
  const Corrector corrector(model, words.tokenizer(), options);
  const auto checked = corrector.check(std::vector{words.line("at cat")});
  REQUIRE(checked[0].size() == 1);
  const double abc = log_probability({2, kAt, kMask, kMask, 3}, 2, kAb, false) +
                     log_probability({2, kAt, kAb, kMask, 3}, 3, kC, false);
  const double act = log_probability({2, kAt, kMask, 3}, 2, kAct, false);
  CHECK(checked[0][0].replacement == (abc > act ? "abc" : "act"));
  CHECK(checked[0][0].replacement_log_probability == doctest::Approx(std::max(abc, act)));
}

TEST_CASE("words of confusion sets stand between white space, or between punctuation") {
  const Words words;
  const FakeModel model = masked();
  CorrectOptions options{.mask = kMask};
  options.confusions = sets("cat\tab.act\n");  // "they're": several pre-tokens
  const Corrector corrector(model, words.tokenizer(), options);
  const auto checked = corrector.check(std::vector{words.line("at\u3000.Ab.act. cats")});
  REQUIRE(checked[0].size() == 1);
  CHECK(checked[0][0].span == text::Span{6, 12});
  const std::vector<TokenId> ids{2, kAt, kDot, kAb, kDot, kAct, kDot, 1, 3};
  double own = 0;
  for (Index i = 3; i < 6; ++i) {
    std::vector<TokenId> hidden = ids;
    std::fill(hidden.begin() + i, hidden.begin() + 6, kMask);
    own += log_probability(hidden, i, ids[static_cast<std::size_t>(i)], false);
  }
  CHECK(checked[0][0].log_probability == doctest::Approx(own));
  CHECK(checked[0][0].replacement == "Cat");
  CHECK(checked[0][0].replacement_log_probability ==
        doctest::Approx(log_probability({2, kAt, kDot, kMask, kDot, 1, 3}, 3, kCat, false)));
}

TEST_CASE("a word that the vocabulary lacks is read as the tokenizer lowers it") {
  const Words words;
  const FakeModel model = masked();
  const Corrector corrector(model, words.tokenizer(), {.mask = kMask, .edit_distance = 1});
  const auto checked = corrector.check(std::vector{words.line("Zct")});
  REQUIRE(checked[0].size() == 1);
  CHECK(checked[0][0].replacement == "Act");  // one letter and a capital away
  CHECK(checked[0][0].edit_cost == 0);
}

TEST_CASE("pieces of words are none where no space is in front") {
  // Byte level: "Ġcat", "cat" and "act"; "ct" and a part of a character never have a space.
  const Words words(byte_level_tokenizer(), "tokenizer.json");
  const FakeModel model = masked();
  const Corrector corrector(model, words.tokenizer(), {.mask = kMask});
  const auto checked = corrector.check(std::vector{words.line("act"), words.line("cat cat")});
  CHECK(checked[0][0].replacement == "cat");
  REQUIRE(checked[1].size() == 2);
  CHECK(checked[1][0].replacement.empty());  // of these alone "act" has no spaced form
  CHECK(checked[1][1].replacement == "");
}

TEST_CASE("words are apart where white space is, however the tokenizer splits, and none overlap") {
  const FakeModel model = masked();
  for (const char* split : {"true", "false"}) {
    CAPTURE(split);
    const Words words(metaspace_tokenizer(split), "tokenizer.json");
    const Corrector corrector(model, words.tokenizer(), {.mask = kMask});
    const std::string text = "cat\tact\u00a0cat\u3000act \u206b  cat";
    const Line line = words.line(text);
    const auto checked = corrector.check(std::vector{line});
    REQUIRE(checked[0].size() == 5);
    const std::vector<text::Span> spans{{0, 3}, {4, 7}, {9, 12}, {15, 18}, {24, 27}};
    for (std::size_t i = 0; i < 5; ++i) CHECK(checked[0][i].span == spans[i]);
    CHECK(corrected(line, checked[0], -1e9) == "act\tcat\u00a0act\u3000cat \u206b  act");
    // NFKC makes two words of this one character.
    const Line two = words.line("cat \ufdfb cat");
    const auto found = corrector.check(std::vector{two});
    REQUIRE(found[0].size() == 3);
    CHECK(found[0][1].span == text::Span{4, 7});
    const std::string all = corrected(two, found[0], -1e9);
    CHECK((all == "act cat act" || all == "act act act"));
  }
}

TEST_CASE("numbers of other scripts are no words") {
  const Words words;
  const FakeModel model = masked();
  const Corrector corrector(model, words.tokenizer(), {.mask = kMask});
  CHECK(corrector.check(std::vector{words.line("\u0664\u0662 42 \uff14 \u0968")})[0].empty());
  CHECK(corrector.check(std::vector{words.line("\u0430")})[0].size() == 1);
}

TEST_CASE("corrections must not overlap") {
  const std::vector<CheckedWord> words{{.span = {0, 3}, .replacement = "x"},
                                       {.span = {2, 4}, .replacement = "y"}};
  CHECK_THROWS_AS(corrected("abcde", words, -1), std::logic_error);
}

TEST_CASE("the best threshold is the best of all, by brute force") {
  const std::vector<std::string> vocabulary{"a", "b", "c", "a,b", "c.a"};
  Draw draw(3, "thresholds");
  for (int round = 0; round < 200; ++round) {
    ThresholdSearch search;
    std::vector<std::string> texts, references;
    std::vector<std::vector<CheckedWord>> words;
    std::vector<double> gains;
    for (int t = 0; t < 3; ++t) {
      std::string& text = texts.emplace_back();
      std::string& reference = references.emplace_back();
      std::vector<CheckedWord>& checked = words.emplace_back();
      const Index size = 1 + draw.below(5);
      for (Index i = 0; i < size; ++i) {
        const std::string& word = vocabulary[static_cast<std::size_t>(draw.below(5))];
        for (std::size_t at = 0; at < word.size(); at += 2) {
          const auto begin = static_cast<std::uint32_t>(text.size() + at);
          checked.push_back(
              {.span = {begin, begin + 1},
               .log_probability = static_cast<double>(draw.below(6)),
               .replacement =
                   draw.below(3) == 0 ? "" : vocabulary[static_cast<std::size_t>(draw.below(3))]});
          if (!checked.back().replacement.empty()) gains.push_back(checked.back().gain());
        }
        text += word + " ";
        if (draw.below(6) > 0)
          reference += vocabulary[static_cast<std::size_t>(draw.below(5))] + " ";
      }
      search.add(text, checked, reference);
    }
    const auto at = [&](double threshold) {
      CorrectionCounts counts;
      for (std::size_t t = 0; t < texts.size(); ++t)
        counts.add(texts[t], corrected(texts[t], words[t], threshold), references[t]);
      return counts.word_correction;
    };
    double most = 0;
    for (const double gain : gains) most = std::max(most, at(gain - 0.5).f1());
    const auto best = search.best();
    CHECK(best.has_value() == (most > 0));
    if (!best) continue;
    const CorrectionCount found = at(best->threshold);
    CHECK(found.f1() == doctest::Approx(most));
    CHECK(best->words.f1() == found.f1());
    CHECK(best->words.done == found.done);
    CHECK(best->words.wanted == found.wanted);
  }
}

TEST_CASE("checks do not depend on batches, and replacements stand where their words stood") {
  const Words words;
  const FakeModel model = masked();
  const std::vector lines{words.line("at abc, cat!"), words.line(""), words.line("  cat  ab ")};
  const auto together = Corrector(model, words.tokenizer(), {.mask = kMask}).check(lines);
  const auto apart =
      Corrector(model, words.tokenizer(), {.mask = kMask, .batch_tokens = 1}).check(lines);
  CHECK(together[1].empty());
  for (std::size_t l = 0; l < lines.size(); ++l) {
    REQUIRE(together[l].size() == apart[l].size());
    for (std::size_t w = 0; w < together[l].size(); ++w) {
      CHECK(together[l][w].log_probability == apart[l][w].log_probability);
      CHECK(together[l][w].replacement == apart[l][w].replacement);
    }
  }
  // What the vocabulary lacks is compared by its letters.
  const auto unknown = Corrector(model, words.tokenizer(), {.mask = kMask, .edit_distance = 1})
                           .check(std::vector{words.line("zat")});
  CHECK(unknown[0][0].log_probability ==
        doctest::Approx(log_probability({2, kMask, 3}, 1, 1, false)));
  CHECK((unknown[0][0].replacement == "cat" || unknown[0][0].replacement == "at"));
  CHECK(corrected(lines[2], together[2], 1e9) == "  cat  ab ");
  CHECK(corrected(lines[2], together[2], -1e9) ==
        "  " + together[2][0].replacement + "  " + together[2][1].replacement + " ");
}

TEST_CASE("words stand for each other by the fewest edits") {
  const std::vector<std::string_view> reference{"a", "b", "c", "d"};
  const std::vector<std::string_view> hypothesis{"a", "x", "c", "c", "d"};
  std::string found;
  for (const WordPair& pair : align_words(reference, hypothesis)) {
    found += pair.reference ? std::to_string(*pair.reference) : "-";
    found += pair.hypothesis ? std::to_string(*pair.hypothesis) : "-";
    found += ' ';
  }
  CHECK(found == "00 -1 12 23 34 ");
}

TEST_CASE("counts of corrections of small cases") {
  CorrectionCounts counts;
  counts.add("a x c", "a b c", "a b c");  // found and put right
  CHECK(counts.word_correction.right == 1);
  CHECK(counts.sentence_correction.right == 1);
  counts.add("a x c", "a y c", "a b c");  // found, not put right
  counts.add("a b c", "a b d", "a b c");  // nothing to find
  counts.add("a x c", "a x c", "a b c");  // not found
  counts.add("a b", "a b", "a b c");      // a word is missing
  counts.add("a b b c", "a b b c", "a b c");
  CHECK(counts.word_detection.wanted == 5);
  CHECK(counts.word_detection.done == 3);
  CHECK(counts.word_detection.right == 2);
  CHECK(counts.word_correction.right == 1);
  CHECK(counts.word_correction.precision() == doctest::Approx(1.0 / 3));
  CHECK(counts.word_correction.recall() == doctest::Approx(0.2));
  CHECK(counts.word_correction.f1() == doctest::Approx(0.25));
  CHECK(counts.sentence_detection.wanted == 5);
  CHECK(counts.sentence_detection.done == 3);
  CHECK(counts.sentence_detection.right == 2);
  CHECK(counts.sentence_correction.right == 1);
  CHECK_THROWS_AS(counts.add("a b", "a", "a b"), std::logic_error);
  CHECK(CorrectionCount().f1() == 0);
}

}  // namespace masque::evaluate
