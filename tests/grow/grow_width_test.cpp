// Wider models of every family compute what the small ones do, or say why there is none.
#include "grow/grow_width.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "grow/compare_models.hpp"
#include "model/model.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::grow {
namespace {

using test::message_of;
using test::ModelCase;
using test::TempFolder;

const char* const kNoWeights =
    "no wider model: the tied vocabulary reads a norm without weights, which cannot divide; "
    "expected an untied one";
const char* const kXlnet =
    "no wider model: XLNet's relative positions of another width are no copies";

/// What has no wider model, and why.
const std::map<std::string, std::string>& refused() {
  static const std::map<std::string, std::string> kRefused = {
      {"gau_alpha", kNoWeights}, {"gau_alpha_softmax", kNoWeights}, {"roformer_v2", kNoWeights},
      {"xlnet", kXlnet},         {"xlnet_two_streams", kXlnet},     {"xlnet_uni", kXlnet}};
  return kRefused;
}

std::unique_ptr<model::Model> open(const std::string& path) {
  return model::open_model(path,
                           {.precision = kernel::Precision::kF64, .mask_token_id = TokenId{4}});
}

ModelDifference difference(const ModelCase& one, const std::string& other) {
  const std::unique_ptr<model::Model> first = open(one.folder);
  const std::unique_ptr<model::Model> second = open(other);
  ModelComparison comparison(*first, *second);
  for (const test::ModelLine& line : one.lines) comparison.add(line.ids, line.segments);
  return comparison.result();
}

ModelCase case_of(const std::string& name) {
  for (const ModelCase& one : test::model_cases())
    if (one.name == name) return one;
  FAIL("no model ", name);
  return {};
}

}  // namespace

TEST_CASE("a wider model of every family gives the same logits and states") {
  int compared = 0;
  for (const ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    const TempFolder folder;
    const std::string wide = folder / "wide";
    if (const auto why = refused().find(one.name); why != refused().end()) {
      CHECK(message_of<UsageError>([&] { grow_width(one.folder, wide, {}); }) == why->second);
      continue;
    }
    const WidthReport report = grow_width(one.folder, wide, {});
    CHECK(report.exact);
    CHECK(report.after.hidden_size == 2 * report.before.hidden_size);
    const ModelDifference found = difference(one, wide);
    CHECK(found.tokens > 0);
    CHECK(found.logits.value_or(0) <= 1e-14 * std::max(1.0, found.largest_logit));
    REQUIRE(found.states);
    CHECK(*found.states <= 1e-14 * std::max(1.0, found.largest_state));
    CHECK(found.largest_state > 1);
    ++compared;
  }
  CHECK(compared >= 40);
}

TEST_CASE("three copies, and copies with unequal shares, differ by the rounding of floats") {
  for (const char* name : {"bert", "albert_groups", "llama", "gpt2", "deberta_v2_conv", "tta"}) {
    CAPTURE(name);
    const ModelCase one = case_of(name);
    for (const WidthRequest& request : {WidthRequest{.factor = 3},
                                        {.factor = 2, .rule = WidthRule::kUnequal, .seed = 1},
                                        {.factor = 3, .rule = WidthRule::kUnequal, .seed = 1}}) {
      const TempFolder folder;
      CHECK_FALSE(grow_width(one.folder, folder / "wide", request).exact);
      const ModelDifference found = difference(one, folder / "wide");
      const double logits = found.logits.value_or(0);
      CHECK(logits > 1e-12);
      CHECK(logits <= 3e-6 * std::max(1.0, found.largest_logit));
      CHECK(found.states.value_or(1) <= 3e-6 * std::max(1.0, found.largest_state));
    }
  }
}

TEST_CASE("shares are drawn from the seed, and other models are other models") {
  const ModelCase one = case_of("bert");
  const TempFolder folder;
  const auto grow = [&](const char* name, std::uint64_t seed) {
    grow_width(one.folder, folder / name, {.rule = WidthRule::kUnequal, .seed = seed});
    return test::read_file(folder / name + "/model.safetensors");
  };
  const std::string first = grow("a", 1);
  CHECK(first == grow("b", 1));
  CHECK(first != grow("c", 2));
  const ModelDifference found = difference(one, case_of("bert_gelu_new").folder);
  CHECK(found.logits.value_or(0) > 0.1);
  const std::unique_ptr<model::Model> bert = open(one.folder);
  const std::unique_ptr<model::Model> bare = open(case_of("bert_headless").folder);
  CHECK_THROWS_AS(ModelComparison(*bert, *bare), UsageError);
}

}  // namespace masque::grow
