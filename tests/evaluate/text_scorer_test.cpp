// Scores of sentences against brute force, on a model that is a formula.
#include "evaluate/score/text_scorer.hpp"

#include <cmath>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "evaluate/score/model_kinds.hpp"
#include "fake_model.hpp"
#include "model/masks.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using test::message_of;

using model::DefaultMask;
using model::HeadKind;

constexpr TokenId kMask = 4;

/// [2] text [3]; `words` of the text's tokens.
Sentence sentence(std::vector<TokenId> text, std::vector<std::uint32_t> words) {
  Sentence s;
  s.prefix = s.suffix = 1;
  s.ids = {2};
  s.words = {text::kNoWord};
  s.ids.insert(s.ids.end(), text.begin(), text.end());
  s.words.insert(s.words.end(), words.begin(), words.end());
  s.ids.push_back(3);
  s.words.push_back(text::kNoWord);
  s.pieces.resize(s.ids.size(), "x");
  return s;
}

/// Words of one, three and two pieces.
const Sentence kText = sentence({5, 6, 7, 8, 9, 10}, {0, 1, 1, 1, 2, 2});

std::vector<ScoredSentence> scored(const model::Model& model, ScoreOptions options,
                                   const std::vector<Sentence>& sentences) {
  options.mask = kMask;
  std::vector<ScoredSentence> out;
  TextScorer scorer(model, options, [&](ScoredSentence&& s) { out.push_back(std::move(s)); });
  for (std::size_t i = 0; i < sentences.size(); ++i) scorer.add(i, sentences[i]);
  scorer.flush();
  return out;
}

/// Σ log p with the tokens in M(t), by its definition, replaced.
double brute_force(const Sentence& s, ScoreKind kind) {
  double sum = 0;
  for (Index t = s.prefix; t < s.size() - s.suffix; ++t) {
    std::vector<TokenId> ids = s.ids;
    for (Index u = s.prefix; u < s.size() - s.suffix; ++u) {
      const bool word =
          s.words[static_cast<std::size_t>(u)] == s.words[static_cast<std::size_t>(t)];
      const bool hidden = kind == ScoreKind::kPll          ? u == t
                          : kind == ScoreKind::kPllWord    ? word
                          : kind == ScoreKind::kPllWordL2r ? u == t || (word && u > t)
                                                           : u >= t;
      if (hidden) ids[static_cast<std::size_t>(u)] = kMask;
    }
    const auto logits = fake_logits(ids, t, 12, [](Index) { return true; });
    sum += log_softmax(logits, s.ids[static_cast<std::size_t>(t)]);
  }
  return sum;
}

TEST_CASE("masked scores are the sums of their definition") {
  const FakeModel model(HeadKind::kMasked);
  std::set<double> different;
  for (const ScoreKind kind :
       {ScoreKind::kPll, ScoreKind::kPllWordL2r, ScoreKind::kPllWord, ScoreKind::kPllGlobalL2r}) {
    CHECK(is_masked(kind));
    const auto out = scored(model, {.kind = kind}, {kText});
    REQUIRE(out.size() == 1);
    CHECK(out[0].tokens == 6);
    CHECK(out[0].score == doctest::Approx(brute_force(kText, kind)).epsilon(1e-14));
    different.insert(out[0].score);
  }
  CHECK(different.size() == 4);
}

TEST_CASE("masked scores of words of one piece coincide") {
  const FakeModel model(HeadKind::kMasked);
  const Sentence words = sentence({5, 6, 7, 8}, {0, 1, 2, 3});
  const double pll = scored(model, {.kind = ScoreKind::kPll}, {words})[0].score;
  CHECK(scored(model, {.kind = ScoreKind::kPllWord}, {words})[0].score == pll);
  CHECK(scored(model, {.kind = ScoreKind::kPllWordL2r}, {words})[0].score == pll);
  CHECK(scored(model, {.kind = ScoreKind::kPllGlobalL2r}, {words})[0].score != pll);
}

TEST_CASE("batches change nothing, and are bounded") {
  const FakeModel model(HeadKind::kMasked);
  Sentence longest = sentence(std::vector<TokenId>(350, 7), std::vector<std::uint32_t>(350, 0));
  longest.ids[9] = 8;
  const std::vector<Sentence> sentences{kText, sentence({}, {}), longest, sentence({11}, {0})};
  const auto expected = scored(model, {.batch_tokens = 4096}, sentences);
  REQUIRE(expected.size() == 4);
  CHECK(model.most_tokens <= 4096);
  CHECK(model.most_tokens > 3000);
  CHECK(expected[1].tokens == 0);
  CHECK(expected[1].score == 0);
  for (const Index batch_tokens : {1, 17, 100000000}) {
    const auto out = scored(model, {.batch_tokens = batch_tokens}, sentences);
    REQUIRE(out.size() == 4);
    for (std::size_t i = 0; i < out.size(); ++i) {
      CHECK(out[i].id == i);
      CHECK(out[i].log_probabilities == expected[i].log_probabilities);
    }
  }
}

TEST_CASE("a causal model predicts from the token in front, so the first needs one") {
  const FakeModel model(HeadKind::kCausal, DefaultMask::kCausal);
  const auto brute = [](const std::vector<TokenId>& ids, Index t) {
    const auto logits = fake_logits(ids, t - 1, 12, [&](Index j) { return j < t; });
    return log_softmax(logits, ids[static_cast<std::size_t>(t)]);
  };
  Sentence bare;
  bare.ids = {5, 6, 7};
  bare.pieces.resize(3);
  bare.words = {0, 1, 2};
  const auto without = scored(model, {.kind = ScoreKind::kCausal}, {bare})[0];
  CHECK(without.tokens == 2);
  CHECK_FALSE(without.log_probabilities[0]);
  CHECK(without.score == doctest::Approx(brute(bare.ids, 1) + brute(bare.ids, 2)).epsilon(1e-14));
  Sentence begun = bare;
  begun.ids.insert(begun.ids.begin(), 1);
  begun.words.insert(begun.words.begin(), text::kNoWord);
  begun.pieces.resize(4);
  begun.prefix = 1;
  const auto with = scored(model, {.kind = ScoreKind::kCausal}, {begun})[0];
  CHECK(with.tokens == 3);
  CHECK(*with.log_probabilities[0] == doctest::Approx(brute(begun.ids, 1)).epsilon(1e-14));
}

TEST_CASE("one pass of a leak-free model is its leave-one-out score") {
  const FakeModel model(HeadKind::kMasked, DefaultMask::kOthers, model::Streams::kFixedKeys);
  // Replacing token t by anything changes nothing at t: the mask token, too.
  CHECK(scored(model, {.kind = ScoreKind::kTta}, {kText})[0].score ==
        scored(model, {.kind = ScoreKind::kPll}, {kText})[0].score);
}

TEST_CASE("two streams hide by masks") {
  const FakeModel model(HeadKind::kCausal, DefaultMask::kFull, model::Streams::kTwo);
  double pll = 0;
  double causal = 0;
  for (Index t = 1; t <= 6; ++t) {
    const TokenId target = kText.ids[static_cast<std::size_t>(t)];
    pll += log_softmax(fake_logits(kText.ids, t, 12, [&](Index j) { return j != t; }), target);
    causal += log_softmax(fake_logits(kText.ids, t, 12, [&](Index j) { return j < t; }), target);
  }
  CHECK(scored(model, {.kind = ScoreKind::kPll}, {kText})[0].score ==
        doctest::Approx(pll).epsilon(1e-14));
  CHECK(scored(model, {.kind = ScoreKind::kCausal}, {kText})[0].score ==
        doctest::Approx(causal).epsilon(1e-14));
}

TEST_CASE("two streams read by the model's mask besides: blocks with a memory, as by mems") {
  const std::string path = MASQUE_TEST_DATA "/evaluate/memory_scores.json";
  const JsonValue golden = parse_json_file(read_text(path, 1 << 20), path);
  Sentence text;
  for (const JsonValue& id : golden.find("ids")->items)
    text.ids.push_back(static_cast<TokenId>(*id.integer()));
  text.words.resize(text.ids.size(), 0);
  text.pieces.resize(text.ids.size(), "x");
  const auto scores = [&](ScoreKind kind, const std::string& masks) {
    model::ModelOptions options{.precision = kernel::Precision::kF64};
    if (!masks.empty()) options.masks = mask::parse_mask_layers(masks);
    const auto model = model::open_model(MASQUE_TEST_DATA "/model/xlnet", options);
    CHECK_NOTHROW(check_kind(kind, model->design(), options));
    const std::vector<ScoredSentence> all = scored(*model, {.kind = kind}, {text});
    std::vector<double> out;
    for (const auto& value : all[0].log_probabilities) out.push_back(value.value());
    return out;
  };
  const std::string memory =
      fmt::format("block_memory({},{})", *golden.find("block_size")->integer(),
                  *golden.find("memory")->integer());
  for (const auto& [kind, name] :
       {std::pair{ScoreKind::kPll, "pll"}, std::pair{ScoreKind::kCausal, "causal"}}) {
    const std::vector<JsonValue>& expected = golden.find(name)->items;
    const std::vector<double> found = scores(kind, memory);
    const std::vector<double> without = scores(kind, "");
    REQUIRE(found.size() == expected.size());
    double change = 0;
    CAPTURE(name);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      change = std::max(change, std::fabs(found[i] - without[i]));
      if (expected[i].is(JsonKind::kNull)) continue;
      CHECK(std::fabs(found[i] - *expected[i].number()) < 1e-9);
    }
    CHECK(change > 0.01);
    CHECK(scores(kind, fmt::format("2*{0}", memory)) == found);
  }
}

TEST_CASE("a discriminator's score is the log-probability that every token is original") {
  const FakeModel model(HeadKind::kDiscriminator);
  double expected = 0;
  for (Index t = 1; t <= 6; ++t) {
    const double x = fake_logits(kText.ids, t, 12, [](Index) { return true; })[0];
    expected += std::log(1 / (1 + std::exp(x)));
  }
  CHECK(scored(model, {.kind = ScoreKind::kElectra}, {kText})[0].score ==
        doctest::Approx(expected).epsilon(1e-13));
}

TEST_CASE("the score of energies is the sum of what they are below 0") {
  const FakeModel model(HeadKind::kEnergy);
  double expected = 0;
  for (Index t = 1; t <= 6; ++t)
    expected -= fake_logits(kText.ids, t, 12, [](Index) { return true; })[0];
  CHECK(scored(model, {.kind = ScoreKind::kElectric}, {kText})[0].score ==
        doctest::Approx(expected).epsilon(1e-14));
}

TEST_CASE("the score of regression is what its head gives to the first token") {
  FakeModel model(HeadKind::kText);
  const double whole = fake_logits(kText.ids, 0, 12, [](Index) { return true; })[0];
  const std::vector<ScoredSentence> found =
      scored(model, {.kind = ScoreKind::kMaskless}, {kText, sentence({}, {}), kText});
  REQUIRE(found.size() == 3);
  CHECK(found[0].score == doctest::Approx(whole).epsilon(1e-14));
  CHECK(found[2].score == found[0].score);
  CHECK(found[0].tokens == 6);
  CHECK(found[1].score == 0);
  CHECK(found[1].tokens == 0);
  for (const std::optional<double>& value : found[0].log_probabilities) CHECK_FALSE(value);

  // Pieces of a long text, or a part of it.
  model.design_to_change().max_position_embeddings = 5;
  const auto part = [](Index begin, Index end) {
    return fake_logits(part_of(kText, begin, end).ids, 0, 12, [](Index) { return true; })[0];
  };
  const auto cut = [&](LengthPolicy::Kind policy) {
    return scored(model, {.kind = ScoreKind::kMaskless, .policy = {policy}}, {kText})[0];
  };
  CHECK(cut(LengthPolicy::Kind::kChunk).score ==
        doctest::Approx(part(0, 3) + part(3, 6)).epsilon(1e-14));
  CHECK(cut(LengthPolicy::Kind::kChunk).tokens == 6);
  CHECK(cut(LengthPolicy::Kind::kLast).score == doctest::Approx(part(3, 6)).epsilon(1e-14));
  CHECK(cut(LengthPolicy::Kind::kLast).tokens == 3);
  CHECK_THROWS_AS(
      TextScorer(model, {.kind = ScoreKind::kMaskless, .policy = {LengthPolicy::Kind::kSlide, 2}},
                 [](ScoredSentence&&) {}),
      UsageError);
}

TEST_CASE("long texts are refused, or read as the policy says") {
  FakeModel model(HeadKind::kMasked);
  model.design_to_change().max_position_embeddings = 5;  // three tokens of text
  TextScorer strict(model, {.mask = kMask}, [](ScoredSentence&&) {});
  CHECK(spell_fields(strict.length_problem(kText).value_or("")) ==
        "8 tokens, expected at most 5 (see policy)");
  CHECK_FALSE(strict.length_problem(part_of(kText, 0, 3)));
  const auto score = [&](const char* policy) {
    return scored(model, {.policy = parse_length_policy(policy)}, {kText})[0];
  };
  const double first = brute_force(part_of(kText, 0, 3), ScoreKind::kPll);
  const double second = brute_force(part_of(kText, 3, 6), ScoreKind::kPll);
  CHECK(score("chunk").score == doctest::Approx(first + second).epsilon(1e-14));
  CHECK(score("first").score == doctest::Approx(first).epsilon(1e-14));
  CHECK(score("last").score == doctest::Approx(second).epsilon(1e-14));
  CHECK(score("last").tokens == 3);
  CHECK(score("slide:3").score == score("chunk").score);
  CHECK(score("slide:1").tokens == 6);
  CHECK(message_of<UsageError>([&] { score("slide:4"); }) ==
        "policy slide:4, expected a stride from 1 to 3, the tokens that fit in a window");
}

TEST_CASE("strides and lengths beyond what is read at once are refused before any text") {
  FakeModel model(HeadKind::kMasked);
  CHECK_FALSE(token_limit(model.design(), 0));
  CHECK(token_limit(model.design(), 7) == 7);
  model.design_to_change().max_position_embeddings = 5;
  CHECK(token_limit(model.design(), 0) == 5);
  CHECK(token_limit(model.design(), 4) == 4);
  CHECK_THROWS_AS(token_limit(model.design(), 6), UsageError);
  CHECK_NOTHROW(check_stride(parse_length_policy("slide:3"), 3));
  CHECK_THROWS_AS(check_stride(parse_length_policy("slide:4"), 3), UsageError);
  CHECK_NOTHROW(check_stride(parse_length_policy("chunk"), 3));
}

TEST_CASE("windows score each token once, where it has the most context") {
  // As the sliding windows of transformers' guide to perplexity: after the first, what is new.
  const auto left = cut_windows(10, 4, parse_length_policy("slide:2"), true);
  REQUIRE(left.size() == 4);
  CHECK(left[0].score_end == 4);
  CHECK(left[1].begin == 2);
  CHECK(left[1].score_begin == 4);
  CHECK(left[1].score_end == 6);
  CHECK(left[3].end == 10);
  for (const bool left_only : {false, true}) {
    for (Index tokens = 1; tokens < 30; ++tokens) {
      for (Index capacity = 1; capacity < 9; ++capacity) {
        for (Index stride = 1; stride <= capacity; ++stride) {
          const auto windows =
              cut_windows(tokens, capacity, {LengthPolicy::Kind::kSlide, stride}, left_only);
          Index next = 0;
          for (const Window& w : windows) {
            CHECK(w.score_begin == next);
            CHECK(w.begin <= w.score_begin);
            CHECK(w.score_end <= w.end);
            CHECK(w.end - w.begin <= capacity);
            next = w.score_end;
          }
          CHECK(next == tokens);
        }
      }
    }
  }
}

TEST_CASE("kinds that a model cannot do are refused") {
  const auto problem = [](ScoreKind kind, const FakeModel& model,
                          const model::ModelOptions& options) {
    return message_of<InputError>([&] { check_kind(kind, model.design(), options); });
  };
  const FakeModel bert(HeadKind::kMasked);
  const FakeModel gpt(HeadKind::kCausal, DefaultMask::kCausal);
  const FakeModel tta(HeadKind::kMasked, DefaultMask::kOthers, model::Streams::kFixedKeys);
  const FakeModel xlnet(HeadKind::kCausal, DefaultMask::kFull, model::Streams::kTwo);
  const FakeModel bare(HeadKind::kNone);
  const FakeModel electra(HeadKind::kDiscriminator);
  const FakeModel electric(HeadKind::kEnergy);
  const FakeModel regression(HeadKind::kText);
  FakeModel towers(HeadKind::kMasked);
  model::set_towers(towers.design_to_change());
  const model::ModelOptions usual;
  for (const auto& [model, kind] : {std::pair{&bert, ScoreKind::kPll},
                                    {&gpt, ScoreKind::kCausal},
                                    {&tta, ScoreKind::kTta},
                                    {&towers, ScoreKind::kTta},
                                    {&electra, ScoreKind::kElectra},
                                    {&electric, ScoreKind::kElectric},
                                    {&regression, ScoreKind::kMaskless},
                                    {&xlnet, ScoreKind::kPll}}) {
    CHECK(default_kind(model->design(), usual) == kind);
    CHECK_NOTHROW(check_kind(kind, model->design(), usual));
  }
  CHECK_THROWS_AS(default_kind(bare.design(), usual), InputError);
  CHECK(problem(ScoreKind::kPll, gpt, usual) ==
        "kind pll: the model has a causal head, expected a masked head");
  CHECK(problem(ScoreKind::kMaskless, bert, usual) ==
        "kind maskless: the model has a masked head, expected a regression head (lm-train classify "
        "with problem_type regression)");
  CHECK(problem(ScoreKind::kPll, regression, usual) ==
        "kind pll: the model has a regression head, expected a masked head");
  CHECK(problem(ScoreKind::kElectra, bert, usual) ==
        "kind electra: the model has a masked head, expected a discriminator");
  CHECK(problem(ScoreKind::kElectra, electric, usual) ==
        "kind electra: the model has energies, expected a discriminator");
  CHECK(problem(ScoreKind::kElectric, electra, usual) ==
        "kind electric: the model has a discriminator, expected energies (an Electric model)");
  for (const ScoreKind kind : {ScoreKind::kPll, ScoreKind::kTta, ScoreKind::kCausal})
    CHECK(problem(kind, electric, usual).find("the model has energies") != std::string::npos);
  CHECK(problem(ScoreKind::kTta, bert, usual)
            .starts_with("kind tta: position 0 of this model reads token 0"));
  CHECK(problem(ScoreKind::kCausal, bert, usual)
            .starts_with("kind causal: position 0 of this model reads token 1"));
  CHECK_THROWS_AS(check_kind(ScoreKind::kTta, xlnet.design(), usual), InputError);

  // Two streams read their layers; what is hidden no mask of words says.
  for (const int which : {0, 1, 2}) {
    model::ModelOptions options;
    if (which == 0) options.masks = mask::parse_open_mask_layers("tta_word");
    if (which == 1) options.keys = mask::KeySource::kInput;
    if (which == 2) options.query = mask::QueryStart::kPosition;
    for (const ScoreKind kind : {ScoreKind::kPll, ScoreKind::kCausal})
      CHECK_THROWS_AS(check_kind(kind, xlnet.design(), options), UsageError);
  }
}

TEST_CASE("the scorer tells the lengths of what it runs") {
  const FakeModel model(HeadKind::kCausal, DefaultMask::kCausal);
  std::vector<Index> lengths;
  ScoreOptions options{.kind = ScoreKind::kCausal};
  options.check_length = [&](Index length) { lengths.push_back(length); };
  scored(model, options, {kText, sentence({5}, {0})});
  CHECK(lengths == std::vector<Index>{8, 3});
}

}  // namespace
}  // namespace masque::evaluate
