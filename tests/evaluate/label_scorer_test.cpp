// Labels by cloze patterns against torch and transformers' tokenizers (scripts/goldens/choose.py),
// and brute force.
#include "evaluate/score/label_scorer.hpp"

#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "evaluate/statistics/summary.hpp"
#include "fake_model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

// A namespace of its own: files of a batch share their helpers.
namespace masque::evaluate::label_scorer_cases {
namespace {

using model::DefaultMask;
using model::HeadKind;
using test::contains;
using test::message_of;

using Texts = std::vector<std::string>;
using Ids = std::vector<TokenId>;

const std::string kProbeData = std::string(MASQUE_TEST_DATA) + "/evaluate/";
constexpr TokenId kMask = 4;
constexpr TokenId kIt = 5, kGood = 6, kBad = 7, kLy = 8, kA = 9, kB = 10;
constexpr const char* kTokens =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nit\ngood\nbad\n##ly\na\nb\n.\n";  // as a FakeModel's

const text::Tokenizer& label_tokenizer() {
  static const auto* tokenizer = [] {
    const test::TempFolder folder;
    test::write_file(folder / "vocab.txt", kTokens);
    return new text::Tokenizer(text::Tokenizer::open(folder / "vocab.txt"));
  }();
  return *tokenizer;
}

/// A pattern with its labels.
struct Setting {
  Setting(const text::Tokenizer& tokenizer, const std::string& pattern, const std::string& labels,
          const SentenceOptions& sentence = {})
      : encoder(
            tokenizer, ClozePattern(pattern, ""),
            {.sentence = sentence, .policy = {}, .longest = {}, .mask = tokenizer.roles().mask}),
        words(label_words(encoder, tokenizer, parse_verbalizer(labels))) {}

  std::vector<std::vector<double>> scores(const model::Model& model, ScoreOptions options,
                                          const std::vector<Texts>& texts,
                                          std::optional<bool> one_pass = {},
                                          const LengthNormalization& length = {}) const {
    options.mask = encoder.options().mask;
    std::vector<std::vector<double>> out;
    LabelScorer scorer(model, encoder, words, options, length, [&](LabelScores&& found) {
      CHECK(found.id == out.size());
      out.push_back(std::move(found.scores));
    });
    if (one_pass) CHECK(scorer.one_pass() == *one_pass);
    for (std::size_t i = 0; i < texts.size(); ++i) scorer.add(i, scorer.sentences(texts[i]));
    scorer.flush();
    return out;
  }

  ClozeEncoder encoder;
  LabelWords words;
};

Setting setting(const std::string& pattern, const std::string& labels) {
  return {label_tokenizer(), pattern, labels};
}

double log_p(const Ids& ids, Index place, TokenId token) {
  return log_softmax(fake_logits(ids, place, 12, [](Index) { return true; }), token);
}

std::vector<double> number_list(const JsonValue& list) {
  std::vector<double> out;
  for (const JsonValue& item : list.items) out.push_back(*item.number());
  return out;
}

const std::vector<Texts> kTexts{{"a"}, {"b a b"}, {""}, {"it it a"}};

}  // namespace

TEST_CASE("scores and calibrated probabilities are those of torch") {
  const std::string path = kProbeData + "choose.json";
  const JsonValue root = parse_json_file(read_text(path, 1 << 20), path);
  CHECK(root.items.size() == 10);
  for (const JsonValue& one : root.items) {
    const std::string name = one.text_of("model");
    const std::string pattern = one.text_of("pattern");
    const std::string labels = one.text_of("labels");
    CAPTURE(name);
    CAPTURE(pattern);
    CAPTURE(labels);
    const auto model = model::open_model(kProbeData + name, {.precision = kernel::Precision::kF64});
    const auto tokenizer = text::Tokenizer::open(kProbeData + name);
    const ScoreKind kind = named_value("kind", one.text_of("kind"), kind_names());
    SentenceOptions sentence;
    if (kind == ScoreKind::kCausal) sentence.begin = begin_token(tokenizer);
    const Setting made(tokenizer, pattern, labels, sentence);
    std::vector<Texts> texts;
    for (const JsonValue& list : one.find("texts")->items) {
      texts.emplace_back();
      for (const JsonValue& text : list.items) texts.back().push_back(text.text);
    }
    const ScoreOptions options{.kind = kind, .mask = tokenizer.roles().mask};
    const auto found = made.scores(*model, options, texts);
    const std::vector<double> prior = content_free_probabilities(
        *model, made.encoder, made.words, options, {}, Texts{"N/A", "[MASK]", ""});
    REQUIRE(found.size() == texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::vector<double> expected = number_list(one.find("scores")->items[i]);
      const std::vector<double> even = number_list(one.find("calibrated")->items[i]);
      const std::vector<double> p = calibrated(label_probabilities(found[i]), prior);
      REQUIRE(found[i].size() == expected.size());
      for (std::size_t l = 0; l < expected.size(); ++l) {
        CHECK(found[i][l] == doctest::Approx(expected[l]).epsilon(1e-10));
        CHECK(p[l] == doctest::Approx(even[l]).epsilon(1e-10));
      }
    }
  }
}

TEST_CASE("one pass gives what the passes of each word give") {
  const FakeModel masked(HeadKind::kMasked);
  const Setting one = setting("X it [MASK].", "good,bad,x=a|b");
  const auto scores = one.scores(masked, {.kind = ScoreKind::kPllWordL2r}, kTexts, true);
  CHECK(masked.runs == 1);
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    const ClozeSentence cloze = one.encoder.encode(kTexts[i], "good", 1);
    Ids ids = cloze.sentence.ids;
    ids[static_cast<std::size_t>(cloze.begin)] = kMask;
    const auto at = [&](TokenId id) { return log_p(ids, cloze.begin, id); };
    CHECK(scores[i][0] == doctest::Approx(at(kGood)).epsilon(1e-12));
    CHECK(scores[i][1] == doctest::Approx(at(kBad)).epsilon(1e-12));
    CHECK(scores[i][2] == doctest::Approx((at(kA) + at(kB)) / 2).epsilon(1e-12));
  }
  // With a word of two tokens among them all are scored by passes of their own.
  const Setting several = setting("X it [MASK].", "good,bad,x=a|b,goodly");
  const auto passes = several.scores(masked, {.kind = ScoreKind::kPllWordL2r}, kTexts, false);
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    for (std::size_t l = 0; l < 3; ++l)
      CHECK(passes[i][l] == doctest::Approx(scores[i][l]).epsilon(1e-12));
  }
  // What comes after the gap may be hidden, too.
  const auto all = several.scores(masked, {.kind = ScoreKind::kPllGlobalL2r}, kTexts, false);
  const auto hidden = one.scores(masked, {.kind = ScoreKind::kPllGlobalL2r}, kTexts, true);
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    CHECK(hidden[i][0] == doctest::Approx(all[i][0]).epsilon(1e-12));
    CHECK(hidden[i][0] != doctest::Approx(scores[i][0]));
  }
}

TEST_CASE("words of several tokens: each given the word's earlier ones, or all others") {
  const FakeModel masked(HeadKind::kMasked);
  const Setting made = setting("X [MASK] .", "goodly,bad it");
  const auto l2r = made.scores(masked, {.kind = ScoreKind::kPllWordL2r}, {{"a"}}, false)[0];
  const Ids first{2, kA, kMask, kMask, 11, 3};
  CHECK(l2r[0] ==
        doctest::Approx(log_p(first, 2, kGood) + log_p({2, kA, kGood, kMask, 11, 3}, 3, kLy)));
  CHECK(l2r[1] ==
        doctest::Approx(log_p(first, 2, kBad) + log_p({2, kA, kBad, kMask, 11, 3}, 3, kIt)));
  const auto pll = made.scores(masked, {.kind = ScoreKind::kPll}, {{"a"}})[0];
  CHECK(pll[1] == doctest::Approx(log_p({2, kA, kMask, kIt, 11, 3}, 2, kBad) +
                                  log_p({2, kA, kBad, kMask, 11, 3}, 3, kIt)));
  const LengthNormalization mean{LengthNormalization::Kind::kPower, 1};
  CHECK(made.scores(masked, {.kind = ScoreKind::kPll}, {{"a"}}, false, mean)[0][1] ==
        doctest::Approx(pll[1] / 2));
}

TEST_CASE("T-TA: one pass, and what stands in the gap is not read") {
  const FakeModel tta(HeadKind::kMasked, DefaultMask::kOthers, model::Streams::kFixedKeys);
  const Setting made = setting("X [MASK] .", "good,bad");
  const auto scores = made.scores(tta, {.kind = ScoreKind::kTta}, kTexts, true);
  CHECK(tta.runs == 1);
  const auto pll = made.scores(tta, {.kind = ScoreKind::kPll}, kTexts, true);
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    for (std::size_t l = 0; l < 2; ++l) CHECK(scores[i][l] == doctest::Approx(pll[i][l]));
  }
  const auto longer = setting("X [MASK] .", "good,bad,goodly")
                          .scores(tta, {.kind = ScoreKind::kTta}, kTexts, false);
  CHECK(longer[1][0] == doctest::Approx(scores[1][0]));
}

TEST_CASE("causal: the word and what follows it, in one pass where it is the last") {
  const FakeModel causal(HeadKind::kCausal, DefaultMask::kCausal);
  const auto next = [](const Ids& ids, Index t) {
    return log_softmax(fake_logits(ids, t - 1, 12, [&](Index j) { return j < t; }),
                       ids[static_cast<std::size_t>(t)]);
  };
  const ScoreOptions options{.kind = ScoreKind::kCausal};
  const auto end = setting("X it [MASK]", "good,bad").scores(causal, options, {{"a"}}, true)[0];
  CHECK(end[1] == doctest::Approx(next({2, kA, kIt, kBad, 3}, 3)));
  const auto inside =
      setting("X it [MASK] b", "good,bad").scores(causal, options, {{"a"}}, false)[0];
  const Ids ids{2, kA, kIt, kBad, kB, 3};
  CHECK(inside[1] == doctest::Approx(next(ids, 3) + next(ids, 4)));
}

TEST_CASE("batches and other texts change nothing") {
  const FakeModel masked(HeadKind::kMasked);
  for (const char* labels : {"good,bad", "good,badly"}) {
    const Setting made = setting("X it [MASK].", labels);
    const auto expected = made.scores(masked, {.kind = ScoreKind::kPllWordL2r}, kTexts);
    for (const Index batch_tokens : {1, 9, 20})
      CHECK(made.scores(masked, {.kind = ScoreKind::kPllWordL2r, .batch_tokens = batch_tokens},
                        kTexts) == expected);
    CHECK(made.scores(masked, {.kind = ScoreKind::kPllWordL2r}, {kTexts[1]})[0] == expected[1]);
  }
}

TEST_CASE("labels that the tokenizer cannot tell apart or does not know") {
  const auto refused = [](const std::string& labels) {
    return message_of<UsageError>([&] { setting("X [MASK]", labels); });
  };
  CHECK(contains(refused("Good,good"), "'Good' and 'good' have the same tokens"));
  CHECK(contains(refused("good,great"), "the tokenizer does not know 'great'"));
}

TEST_CASE("calibration, and the likeliest label") {
  const std::vector<double> p = calibrated(std::vector{0.6, 0.3, 0.1}, std::vector{0.8, 0.1, 0.1});
  CHECK(p[0] == doctest::Approx(0.75 / 4.75));
  CHECK(p[1] == doctest::Approx(3 / 4.75));
  CHECK(p[2] == doctest::Approx(1 / 4.75));
  CHECK(likeliest_label(p) == 1);
  CHECK(likeliest_label(std::vector{0.2, 0.4, 0.4}) == 1);
}

TEST_CASE("Wilson's interval") {
  // scipy 1.17.1, binomtest(8, 10).proportion_ci(method="wilson").
  const Interval some = wilson_interval(8, 10);
  CHECK(some.low == doctest::Approx(0.4901625).epsilon(1e-6));
  CHECK(some.high == doctest::Approx(0.9433178).epsilon(1e-6));
  CHECK(wilson_interval(0, 5).low == 0);
  CHECK(wilson_interval(5, 5).high == doctest::Approx(1));
  CHECK(wilson_interval(0, 0).high == 1);
}

}  // namespace masque::evaluate::label_scorer_cases
