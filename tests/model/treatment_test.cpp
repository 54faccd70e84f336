// Treatments of positions: what they do not change, and what they are equal to.
#include "model/treatment.hpp"

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/checkpoint/save.hpp"
#include "model/random_model.hpp"
#include "model/treatable_model.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using masque::test::TempFolder;

// Of tiny_design: positions that training had.
constexpr Index kTrained = 12;

class Logits final : public Observer {
 public:
  void logits(Index, Index, MatrixView<const double> x) override {
    for (Index i = 0; i < x.rows; ++i) values.insert(values.end(), x.row(i), x.row(i) + x.columns);
  }
  std::vector<double> values;
};

ModelOptions exact() {
  ModelOptions options;
  options.precision = kernel::Precision::kF64;
  options.mask_token_id = 4;  // of T-TA, whose folder names none
  return options;
}

std::vector<TokenId> text_of(Index length, Index vocabulary) {
  std::vector<TokenId> ids;
  for (Index i = 0; i < length; ++i)
    ids.push_back(static_cast<TokenId>(5 + (i * i + 3 * i) % (vocabulary - 5)));
  return ids;
}

/// Logits of a text, or without a head its last states as attention left them.
std::vector<double> run_treated(const Model& model, const std::vector<TokenId>& ids,
                                const std::vector<Index>& positions = {}) {
  Batch batch;
  batch.add(ids, {positions, {}, {}, {}});
  Request request;
  request.logits = true;
  request.all_rows = true;
  Logits seen;
  model.run(batch, request, &seen);
  return seen.values;
}

std::vector<double> run_treated(const TreatableModel& model, const std::string& treatment,
                                Index length, Index trained = kTrained) {
  const auto position = parse_position_treatment(treatment);
  return run_treated(*model.open(*position, {trained, length}, exact()),
                     text_of(length, model.design().vocab_size));
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE(!a.empty());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]) / (1 + std::abs(b[i])));
  return worst;
}

/// A tiny model with random weights on disk. Those of another position scheme are the same but for
/// its own.
struct Tiny {
  explicit Tiny(const std::string& members)
      : design(test::tiny_design(members)), weights(test::random_weights<float>(design, 3)) {
    save_model(folder / "model", design, weights);
    model = std::make_unique<TreatableModel>(folder / "model", "", kernel::Precision::kF64);
  }
  TempFolder folder;
  Design design;
  ModelWeights<float> weights;
  std::unique_ptr<TreatableModel> model;
};

const std::string kRotary = R"("position_embedding_type": "rotary", "rotary_interleaved": false)";
const std::string kLearned = R"("position_embedding_type": "learned")";

std::string scheme(const std::string& name) { return fmt::format(R"("position": "{}")", name); }

TEST_CASE("every treatment goes with some models, and says why not with others") {
  std::vector<std::unique_ptr<Tiny>> models;
  for (const std::string& members :
       {kRotary, kLearned, scheme("rope(layout=half)"), scheme("learned(alpha=0.2)"),
        std::string(R"("position_embedding_type": "alibi")"), scheme("t5")})
    models.push_back(std::make_unique<Tiny>(members));
  for (const PositionTreatmentInfo& info : position_treatments()) {
    CAPTURE(info.name);
    CHECK(!info.about.empty());
    int served = 0;
    for (const auto& tiny : models) {
      const auto treatment = parse_position_treatment(info.name);
      try {
        const Index longest = tiny->model->longest(*treatment, {kTrained, 30});
        ++served;
        if (longest > 0 && longest < 30) {
          CHECK((info.name == "own" || info.name == "alibi"));
          continue;
        }
        for (const double x : run_treated(*tiny->model, info.name, 30)) REQUIRE(std::isfinite(x));
      } catch (const UsageError& error) {
        CHECK(std::string(error.what()).starts_with(info.name + ": found "));
      }
    }
    CHECK(served >= 2);
    CHECK(served == (info.name == "own"                                    ? 6
                     : info.name == "interpolated" || info.name == "alibi" ? 4
                                                                           : 2));
  }
  CHECK_THROWS_AS(parse_position_treatment("no_such_thing"), UsageError);
  for (const char* wrong : {"yarn(base=2)", "ntk(factor=0.5)", "leaky_rerope(factor=0.5)"})
    CHECK_THROWS_AS(parse_position_treatment(wrong), UsageError);
}

TEST_CASE("own is the model as it is opened, whatever its family") {
  class States final : public Observer {
   public:
    void last_states(Index, Index, MatrixView<const double> x) override {
      for (Index i = 0; i < x.rows; ++i)
        values.insert(values.end(), x.row(i), x.row(i) + x.columns);
    }
    std::vector<double> values;
  };
  const auto states = [](const Model& model) {
    Batch batch;
    batch.add(text_of(10, model.design().vocab_size));
    States seen;
    model.run(batch, {.last_states = true, .all_rows = true}, &seen);
    return seen.values;
  };
  const auto own = parse_position_treatment("own");
  for (const masque::test::ModelCase& one : masque::test::model_cases()) {
    CAPTURE(one.name);
    const TreatableModel model(one.folder, "", kernel::Precision::kF64);
    const Index trained = std::max<Index>(model.trained_length(), 10);
    const auto treated = model.open(*own, {trained, 10}, exact());
    CHECK(states(*treated) == states(*open_model(one.folder, exact())));
    if (model.design().position != PositionType::kLearned) continue;
    if (model.design().variants.mixer != nullptr) continue;  // which has its own length
    // Rows for padding in front of the table stay where they are.
    const std::vector<Index> positions{0, 1, 2, 3, 4, 5}, twice{0, 2, 4, 6, 8, 10};
    if (model.design().head.kind == HeadKind::kNone) continue;
    const auto half = parse_position_treatment("interpolated(factor=2)");
    const auto longer = model.open(*half, {trained, 2 * trained}, exact());
    const std::vector<TokenId> ids = text_of(6, model.design().vocab_size);
    CHECK(farthest(run_treated(*longer, ids, twice), run_treated(*treated, ids, positions)) <
          1e-12);
  }
}

TEST_CASE("up to the trained length nothing is stretched") {
  const Tiny rotary(kRotary), learned(kLearned);
  for (const Index length : {Index{7}, kTrained}) {
    for (const char* name : {"interpolated", "ntk", "ntk_mixed", "yarn"})
      CHECK(run_treated(*rotary.model, name, length) == run_treated(*rotary.model, "own", length));
    for (const char* name : {"interpolated", "hierarchical"})
      CHECK(run_treated(*learned.model, name, length) ==
            run_treated(*learned.model, "own", length));
  }
  for (const char* name : {"interpolated", "ntk", "ntk_mixed", "yarn"})
    CHECK(farthest(run_treated(*rotary.model, name, 30), run_treated(*rotary.model, "own", 30)) >
          1e-4);
}

TEST_CASE("stretched frequencies are those of the schemes of nn") {
  const Tiny plain(kRotary);
  const std::pair<const char*, const char*> pairs[] = {
      {"own", "rope(layout=half)"},
      {"interpolated", "rope_pi(layout=half, factor=2.5)"},
      {"ntk", "rope_ntk(layout=half, factor=2.5)"},
      {"ntk_mixed(power=0.5)", "rope_ntk_mixed(layout=half, factor=2.5, power=0.5)"},
      {"yarn(beta_fast=3, beta_slow=0.5)",
       "rope_yarn(layout=half, factor=2.5, length=12, beta_fast=3, beta_slow=0.5)"},
      {"rerope(window=5)", "rerope(layout=half, window=5)"},
      {"leaky_rerope(window=5, factor=3)", "leaky_rerope(layout=half, window=5, factor=3)"}};
  for (const auto& pair : pairs) {
    const auto& treatment = pair.first;
    const auto& name = pair.second;
    CAPTURE(treatment);
    const Tiny other(scheme(name));
    const std::vector<double> expected = run_treated(*other.model, "own", 30);
    CHECK(farthest(run_treated(*plain.model, treatment, 30), expected) < 1e-10);
    // The same from a model that spells its positions as a scheme.
    const Tiny spelled(scheme("rope(layout=half)"));
    CHECK(farthest(run_treated(*spelled.model, treatment, 30), expected) < 1e-10);
  }
}

TEST_CASE("interpolated by 2, even positions are what all positions were") {
  for (const std::string& members : {kRotary, kLearned}) {
    const Tiny tiny(members);
    const auto half = parse_position_treatment("interpolated(factor=2)");
    const auto own = parse_position_treatment("own");
    const std::vector<TokenId> ids = text_of(6, 40);
    const std::vector<double> expected =
        run_treated(*tiny.model->open(*own, {kTrained, 6}, exact()), ids, {0, 1, 2, 3, 4, 5});
    const auto stretched = tiny.model->open(*half, {kTrained, 24}, exact());
    CHECK(farthest(run_treated(*stretched, ids, {0, 2, 4, 6, 8, 10}), expected) < 1e-12);
    CHECK(farthest(run_treated(*stretched, ids, {0, 1, 2, 3, 4, 5}), expected) > 1e-4);
  }
}

TEST_CASE("an interpolated table is the one that is drawn between its rows") {
  const Tiny tiny(kLearned);
  // The same by hand: 30 positions on 12 rows.
  ModelWeights<float> weights = tiny.weights;
  const MatrixView<const float> table = tiny.weights.position_table.view;
  auto longer = std::make_shared<Matrix<float>>(30, table.columns);
  for (Index p = 0; p < 30; ++p) {
    const double place = static_cast<double>(p) * 12 / 30;
    const auto low = static_cast<Index>(place);
    const double above = place - static_cast<double>(low);
    for (Index c = 0; c < table.columns; ++c) {
      const double next = low < 11 ? table.at(low + 1, c) : table.at(11, c);
      longer->view().at(p, c) = static_cast<float>((1 - above) * table.at(low, c) + above * next);
    }
  }
  weights.position_table = {std::as_const(*longer).view(), longer};
  Design design = tiny.design;
  design.max_position_embeddings = 30;
  const TempFolder folder;
  save_model(folder / "long", design, weights);
  const TreatableModel by_hand(folder / "long", "", kernel::Precision::kF64);
  CHECK(farthest(run_treated(*tiny.model, "interpolated", 30), run_treated(by_hand, "own", 30)) <
        1e-6);
}

TEST_CASE("a hierarchical table is the extension of the scheme learned") {
  const Tiny table(kLearned), extended(scheme("learned(alpha=0.3)"));
  const Design& design = extended.design;
  ModelWeights<float> weights = table.weights;
  weights.position = {table.weights.position_table};
  weights.position_table = {};
  const TempFolder folder;
  save_model(folder / "scheme", design, weights);
  const TreatableModel own(folder / "scheme", "", kernel::Precision::kF64);
  const std::vector<double> expected = run_treated(own, "own", 30);
  CHECK(farthest(run_treated(*table.model, "hierarchical(alpha=0.3)", 30), expected) < 1e-12);
  CHECK(farthest(run_treated(own, "hierarchical(alpha=0.3)", 30), expected) < 1e-12);
  CHECK(farthest(run_treated(*table.model, "hierarchical(alpha=0.2)", 30), expected) > 1e-4);
}

TEST_CASE("distances below the window are not bent, with keys that heads share too") {
  for (const masque::test::ModelCase& one : masque::test::model_cases()) {
    if (one.name != "llama" && one.name != "roformer" && one.name != "gau_alpha" &&
        one.name != "gpt_neox")
      continue;
    CAPTURE(one.name);
    const TreatableModel model(one.folder, "", kernel::Precision::kF64);
    const std::vector<double> expected = run_treated(model, "own", 16);
    // Frequencies of transformers are floats.
    for (const char* name : {"rerope(window=16)", "leaky_rerope(window=3, factor=1)"})
      CHECK(farthest(run_treated(model, name, 16), expected) < 1e-4);
    CHECK(farthest(run_treated(model, "rerope(window=2)", 16), expected) > 1e-3);
  }
}

TEST_CASE("ALiBi acts together with the own positions") {
  const Tiny none(R"("position_embedding_type": "none")");
  const Tiny alibi(R"("position_embedding_type": "alibi")");
  CHECK(farthest(run_treated(*none.model, "alibi", 20), run_treated(*alibi.model, "own", 20)) <
        1e-12);
  const Tiny rotary(kRotary), spelled(scheme("rope(layout=half)"));
  const std::vector<double> both = run_treated(*rotary.model, "alibi", 10);
  CHECK(farthest(both, run_treated(*rotary.model, "own", 10)) > 1e-4);
  CHECK(farthest(both, run_treated(*spelled.model, "alibi", 10)) < 1e-12);
  CHECK_THROWS_AS(run_treated(*alibi.model, "alibi", 10), UsageError);
}

TEST_CASE("which lengths a model reads") {
  const Tiny rotary(kRotary), learned(kLearned);
  const auto longest = [](const Tiny& tiny, const char* treatment, Index trained, Index length) {
    return tiny.model->longest(*parse_position_treatment(treatment), {trained, length});
  };
  CHECK(longest(rotary, "own", 12, 40) == 40);
  CHECK(longest(learned, "own", 12, 40) == 12);
  CHECK(longest(learned, "own", 5, 8) == 12);
  CHECK(longest(learned, "interpolated", 12, 40) == 40);
  CHECK_THROWS_AS(longest(learned, "interpolated", 13, 40), UsageError);
  // Rows after the trained length are not read.
  Tiny changed(kLearned);
  const auto table =
      std::make_shared<Matrix<float>>(Matrix<float>::copy(changed.weights.position_table.view));
  for (Index p = 5; p < 12; ++p) table->view().at(p, 0) = 100;
  changed.weights.position_table = {std::as_const(*table).view(), table};
  save_model(changed.folder / "changed", changed.design, changed.weights);
  const TreatableModel model(changed.folder / "changed", "", kernel::Precision::kF64);
  for (const char* name : {"interpolated", "hierarchical"})
    CHECK(run_treated(model, name, 10, 5) == run_treated(*learned.model, name, 10, 5));
  // No treatment extends the table of late positions.
  const std::string late = R"(, "late_positions": 1)";
  for (const std::string& members : {kRotary + late, scheme("alibi") + late, kLearned + late}) {
    CAPTURE(members);
    const Tiny limited(members);
    CHECK(longest(limited, "own", 12, 40) == 12);
    run_treated(*limited.model, "own", 12);
    CHECK_THROWS_AS(run_treated(*limited.model, "own", 13), InputError);
  }
  CHECK_THROWS_WITH_AS(longest(Tiny(kLearned + late), "interpolated", 12, 40),
                       doctest::Contains("late positions"), UsageError);
  CHECK(learned.model->trained_length() == 12);
  CHECK(rotary.model->trained_length() == 12);
}

}  // namespace
}  // namespace masque::model
