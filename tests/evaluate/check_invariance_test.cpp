// Padding, batches and orders change nothing; where they do, the place is named.
#include "evaluate/check/check_invariance.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "fake_model.hpp"
#include "model/checkpoint/save.hpp"
#include "model/random_model.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

using kernel::Precision;

CheckInput some_input(Index n, Index vocabulary, Index offset = 0) {
  CheckInput input;
  for (Index i = 0; i < n; ++i)
    input.ids.push_back(static_cast<TokenId>(5 + (7 * i + 3 + offset) % (vocabulary - 5)));
  return input;
}

std::unique_ptr<model::Model> open(const std::string& name, model::ModelOptions options) {
  options.mask_token_id = 4;
  return model::open_model(MASQUE_TEST_DATA "/model/" + name, options);
}

std::vector<std::string> names_of(const InvarianceReport& report) {
  std::vector<std::string> names;
  for (const InvarianceRow& row : report.rows) names.push_back(row.name);
  return names;
}

/// A model that remembers how long the run before was.
class Forgetful final : public FakeModel {
 public:
  Forgetful() : FakeModel(model::HeadKind::kNone) {}
  std::vector<double> run(const model::Batch& batch, const model::Request& request,
                          model::Observer* observer) const override {
    model::Batch moved = batch;
    if (before_ > batch.length(0)) moved.ids.front() += 1;
    before_ = batch.length(0);
    return FakeModel::run(moved, request, observer);
  }

 private:
  mutable Index before_ = 0;
};

}  // namespace

TEST_CASE("padding changes no real row of any family") {
  for (const test::ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    for (const Precision precision : {Precision::kF32, Precision::kF64}) {
      model::ModelOptions options;
      options.precision = precision;
      const auto model = open(one.name, options);
      const model::Design& design = model->design();
      PaddingRequest request;
      request.token = static_cast<TokenId>(design.pad_token_id.value_or(0));
      InvarianceReport report;
      report.tolerance = padding_tolerance(precision);
      const auto check = [&] {
        const NumberedInput input{0, some_input(9, design.vocab_size)};
        check_padding(*model, options, input, request, 8192, report);
      };
      // FNet reads padding like any token.
      if (one.name.starts_with("fnet")) {
        CHECK(test::message_of<UsageError>(check) ==
              "fnet does not support this mask, expected one of: full");
        continue;
      }
      check();
      // A shifted head predicts the first token from its own state: nothing stands in front of it.
      REQUIRE(report.rows.size() >= (design.head.shifted ? 2 : 3));
      CHECK(report.rows[0].rows == 9);
      // A convolution reads its neighbours whatever the mask says; angles that depend on the length
      // of the text change with it, and so does which block is the last one.
      CHECK(report.clean() == (design.convolution_size == 0 && model::long_from(design) == 0 &&
                               one.name != "big_bird_long"));
      if (design.convolution_size == 0) continue;
      CHECK(report.rows[0].first->layer == 1);
      CHECK(report.rows[0].first->position == 8);
      CHECK(report.rows[1].first->position == 0);
    }
  }
}

TEST_CASE("padding in front of latent bottlenecks is left out") {
  const model::Design design = model::test::tiny_design(
      R"("position": "rope", "latent": {"num_hidden_layers": 1, "size": 4, "kappa": 8})");
  const test::TempFolder folder = test::TempFolder::in_memory();
  model::save_model(folder / "latent", design, model::test::random_weights<float>(design, 5));
  const auto model = model::open_model(folder / "latent");
  InvarianceReport report;
  report.tolerance = 1e-5;
  check_padding(*model, {}, {0, some_input(5, design.vocab_size)}, {.count = 2}, 8192, report);
  CHECK(names_of(report) == std::vector<std::string>{"append", "append, own positions"});
  CHECK(report.clean());
}

TEST_CASE("padding: RoBERTa passes over it, BERT counts it, records have masks of their own") {
  const auto names = [](const char* name) {
    model::ModelOptions options;
    const auto model = open(name, options);
    PaddingRequest request;
    request.token = static_cast<TokenId>(model->design().pad_token_id.value_or(0));
    InvarianceReport report;
    report.tolerance = 1e-5;
    check_padding(*model, options, {0, some_input(5, model->design().vocab_size)}, request, 8192,
                  report);
    return names_of(report);
  };
  using Names = std::vector<std::string>;
  CHECK(names("bert") == Names{"append", "prepend", "append, own positions"});
  CHECK(names("roberta") ==
        Names{"append", "prepend", "append, own positions", "prepend, own positions"});
  for (const char* relative : {"roformer", "t5_encoder", "xlnet", "gau_alpha"}) {
    CHECK(names(relative) ==
          Names{"append", "prepend", "append, own positions", "prepend, own positions"});
  }
  for (const char* moved : {"llama", "roformer_value"}) {
    CHECK(names(moved) == Names{"append", "prepend", "append, own positions"});
  }

  model::ModelOptions options;
  options.masks = mask::parse_mask_layers("window(1)");
  const auto model = open("bert", options);
  InvarianceReport report;
  report.tolerance = 1e-5;
  NumberedInput text{7, some_input(9, model->design().vocab_size)};
  check_padding(*model, options, text, {}, 8192, report);
  text.input.mask = mask::parse_mask("prefix(3) | causal").bind({9, 9});
  check_padding(*model, options, text, {}, 8192, report);
  CHECK(report.clean());
  CHECK(report.rows[0].texts == 2);
  // Without the mask that hides it, padding would be found.
  CheckInput naked = some_input(9, model->design().vocab_size);
  const CheckStates expected = check_states(*model, naked);
  CheckVariant variant{naked, &expected, {0, 8}, {0, 8}};
  variant.input.ids.push_back(0);
  InvarianceReport found;
  found.add("naked", 7, variant, compare_variants(*model, {&variant, 1}, 64).front());
  REQUIRE(found.rows[0].first);
  CHECK(found.rows[0].first->text == 7);
  CHECK(found.rows[0].first->layer == 1);
  CHECK(found.rows[0].first->position == 8);
  options.masks = mask::parse_mask_layers("causal, full");
  const auto list = open("bert", options);
  CHECK_THROWS_AS(check_padding(*list, options, text = {0, naked}, {}, 64, report), UsageError);
}

TEST_CASE("neither batch nor order changes a bit of any family") {
  for (const test::ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kF64}) {
      const auto model = open(one.name, {.precision = precision});
      const Index vocabulary = model->design().vocab_size;
      std::vector<NumberedInput> texts;
      for (const Index n : {3, 17, 1, 8, 8}) {
        texts.push_back({texts.size(), some_input(n, vocabulary, n)});
      }
      InvarianceReport report;
      check_batch(*model, texts, 8192, report);
      check_order(*model, texts, 0, report);
      CHECK(report.clean());
      CHECK(names_of(report) == std::vector<std::string>{"together", "together, backwards",
                                                         "another order", "long after others",
                                                         "short after long", "long after short"});
      CHECK(report.rows[0].rows == 37);
    }
  }
}

TEST_CASE("what a run leaves behind is found") {
  const Forgetful model;
  std::vector<NumberedInput> texts;
  for (const Index n : {2, 9}) texts.push_back({texts.size() + 5, some_input(n, 12)});
  InvarianceReport report;
  check_order(model, texts, 0, report);
  const auto short_after_long = std::find_if(report.rows.begin(), report.rows.end(), [](auto& row) {
    return row.name == "short after long";
  });
  REQUIRE(short_after_long != report.rows.end());
  CHECK(short_after_long->differing == 1);
  CHECK(short_after_long->first->text == 5);
  CHECK(short_after_long->first->position == 0);
}

}  // namespace masque::evaluate
