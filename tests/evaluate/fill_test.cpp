// Fillings of masks against transformers (scripts/goldens/fill.py) and brute force.
#include "evaluate/write/fill.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "fake_model.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using model::HeadKind;

const std::string kFillData = MASQUE_TEST_DATA;
constexpr TokenId kMask = 4;
constexpr Index kVocabulary = 12;  // of a FakeModel

MaskedText masked_text(std::vector<TokenId> ids, std::uint64_t id = 0) {
  MaskedText text;
  text.id = id;
  text.sentence.ids = std::move(ids);
  text.places = places_of(text.sentence, kMask);
  return text;
}

std::vector<double> numbers(const JsonValue& list) {
  std::vector<double> out;
  for (const JsonValue& item : list.items) out.push_back(*item.number());
  return out;
}

/// log p of a token at a place.
double log_probability(const std::vector<TokenId>& ids, Index place, TokenId token) {
  return log_softmax(fake_logits(ids, place, kVocabulary, [](Index) { return true; }), token);
}

}  // namespace

TEST_CASE("fillings are those of transformers' fill-mask pipeline") {
  const std::string path = kFillData + "/evaluate/fill.json";
  const JsonValue root = parse_json_file(read_text(path, 1 << 20), path);
  const JsonValue& models = *root.find("fillings");
  CHECK(models.members.size() == 7);
  for (const JsonMember& member : models.members) {
    const std::string& name = member.name;
    const JsonValue& cases = member.value;
    CAPTURE(name);
    const auto model =
        model::open_model(kFillData + "/model/" + name, {.precision = kernel::Precision::kF64});
    std::vector<MaskedText> texts;
    for (const JsonValue& one : cases.items) {
      const std::vector<double> ids = numbers(*one.find("ids"));
      texts.push_back(masked_text({ids.begin(), ids.end()}));
    }
    const std::vector<FilledText> filled = fill(*model, texts, {});
    for (std::size_t t = 0; t < texts.size(); ++t) {
      const JsonValue& tokens = *cases.items[t].find("tokens");
      const JsonValue& probabilities = *cases.items[t].find("probabilities");
      REQUIRE(filled[t].masks.size() == tokens.items.size());
      for (std::size_t m = 0; m < tokens.items.size(); ++m) {
        const std::vector<double> ids = numbers(tokens.items[m]);
        const std::vector<double> p = numbers(probabilities.items[m]);
        REQUIRE(filled[t].masks[m].size() == ids.size());
        for (std::size_t i = 0; i < ids.size(); ++i) {
          CHECK(filled[t].masks[m][i].id == static_cast<TokenId>(ids[i]));
          CHECK(filled[t].masks[m][i].probability == doctest::Approx(p[i]).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("targets alone are put there, with their probabilities among all tokens") {
  const FakeModel model(HeadKind::kMasked);
  const std::vector<TokenId> ids{1, kMask, 7, kMask, 3};
  const auto filled = fill(model, std::vector{masked_text(ids)}, {.targets = {9, 2}});
  REQUIRE(filled[0].masks.size() == 2);
  for (std::size_t m = 0; m < 2; ++m) {
    const std::vector<Filling>& found = filled[0].masks[m];
    REQUIRE(found.size() == 2);
    CHECK(found[0].probability >= found[1].probability);
    CHECK(std::min(found[0].id, found[1].id) == 2);
    CHECK(std::max(found[0].id, found[1].id) == 9);
    for (const Filling& f : found) {
      CHECK(std::log(f.probability) == doctest::Approx(log_probability(ids, m == 0 ? 1 : 3, f.id)));
    }
  }
}

TEST_CASE("a beam as wide as the vocabulary finds the likeliest pair, a narrow one is greedy") {
  const FakeModel model(HeadKind::kMasked);
  const std::vector<TokenId> ids{1, kMask, 7, kMask, 3, 8};
  std::vector<JointFilling> all;
  for (TokenId a = 0; a < kVocabulary; ++a) {
    const double first = log_probability(ids, 1, a);
    std::vector<TokenId> next = ids;
    next[1] = a;
    for (TokenId b = 0; b < kVocabulary; ++b)
      all.push_back({{a, b}, first + log_probability(next, 3, b)});
  }
  std::ranges::stable_sort(all, std::greater<>(), &JointFilling::log_probability);
  const std::vector texts{masked_text(ids), masked_text({5, kMask, 2}), masked_text(ids)};
  const auto beam =
      fill(model, texts, {.top_k = 7, .joint = JointFill::kBeam, .num_beams = kVocabulary});
  REQUIRE(beam[0].joint.size() == 7);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(beam[0].joint[i].ids == all[i].ids);
    CHECK(beam[2].joint[i].ids == all[i].ids);
    CHECK(beam[0].joint[i].log_probability == doctest::Approx(all[i].log_probability));
  }
  CHECK(beam[1].joint[0].ids.size() == 1);
  const auto greedy = fill(model, texts, {.joint = JointFill::kLeftToRight});
  REQUIRE(greedy[0].joint.size() == 1);
  const TokenId first = greedy[0].joint[0].ids[0];
  for (TokenId a = 0; a < kVocabulary; ++a)
    CHECK(log_probability(ids, 1, first) >= log_probability(ids, 1, a));
}

namespace {

/// The same logits everywhere.
class EverywhereModel : public FakeModel {
 public:
  explicit EverywhereModel(std::vector<double> logits)
      : FakeModel(HeadKind::kMasked), logits_(std::move(logits)) {}
  std::vector<double> run(const model::Batch& batch, const model::Request& request,
                          model::Observer* observer) const override {
    Index s = 0;
    for (Index i = 0; i < std::ssize(request.rows); ++i) {
      while (request.rows[static_cast<std::size_t>(i)] >=
             batch.begins[static_cast<std::size_t>(s) + 1])
        ++s;
      observer->logits(s, i, MatrixView<const double>(logits_.data(), 1, std::ssize(logits_)));
    }
    return {};
  }

 private:
  std::vector<double> logits_;
};

}  // namespace

TEST_CASE("of equally likely fillings of a beam those with lower ids are first") {
  std::vector<double> logits(12, -50.0);
  logits[5] = 0;
  logits[7] = 1;
  const EverywhereModel model(logits);
  const std::vector texts{masked_text({1, kMask, kMask})};
  const auto filled = fill(model, texts, {.top_k = 4, .joint = JointFill::kBeam, .num_beams = 4});
  REQUIRE(filled[0].joint.size() == 4);
  CHECK(filled[0].joint[0].ids == std::vector<TokenId>{7, 7});
  CHECK(filled[0].joint[1].log_probability == filled[0].joint[2].log_probability);
  CHECK(filled[0].joint[1].ids == std::vector<TokenId>{5, 7});
  CHECK(filled[0].joint[2].ids == std::vector<TokenId>{7, 5});
  CHECK(filled[0].joint[3].ids == std::vector<TokenId>{5, 5});
}

TEST_CASE("Gibbs draws visit tokens as often as the model's conditionals say, whatever the batch") {
  const FakeModel model(HeadKind::kMasked);
  const std::vector<TokenId> ids{1, kMask, 7};
  const std::vector texts{masked_text(ids, 3), masked_text({5, kMask, kMask, 2}, 4)};
  FillOptions options{.top_k = kVocabulary, .joint = JointFill::kGibbs, .sweeps = 20000, .seed = 5};
  const auto filled = fill(model, texts, options);
  // One mask: its draws are independent.
  double sum = 0;
  for (const JointFilling& f : filled[0].joint) {
    const double share = std::exp(f.log_probability);
    const double p = std::exp(log_probability(ids, 1, f.ids[0]));
    CHECK(std::abs(share - p) < 5 * std::sqrt(p / 20000) + 1e-4);
    sum += share;
  }
  CHECK(sum == doctest::Approx(1));
  options.batch_tokens = 1;
  const auto alone = fill(model, std::span(texts).subspan(1), options);
  REQUIRE(alone[0].joint.size() == filled[1].joint.size());
  for (std::size_t i = 0; i < alone[0].joint.size(); ++i) {
    CHECK(alone[0].joint[i].ids == filled[1].joint[i].ids);
    CHECK(alone[0].joint[i].log_probability == filled[1].joint[i].log_probability);
  }
  options.targets = {6, 8};
  options.sweeps = 50;
  const auto few = fill(model, texts, options);
  for (const JointFilling& f : few[1].joint) {
    for (const TokenId id : f.ids) CHECK((id == 6 || id == 8));
  }
}

TEST_CASE("models that fill no masks are refused") {
  CHECK_NOTHROW(check_filling(FakeModel(HeadKind::kMasked).design()));
  CHECK(test::message_of([] { check_filling(FakeModel(HeadKind::kCausal).design()); }) ==
        "the model has no masked head, expected a masked language model");
  CHECK(
      test::message_of([] {
        check_filling(
            FakeModel(HeadKind::kMasked, model::DefaultMask::kFull, model::Streams::kTwo).design());
      }) == "the model has two streams, expected a model with one");
}

}  // namespace masque::evaluate
