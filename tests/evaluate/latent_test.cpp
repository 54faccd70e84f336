// Texts from points: what decoding computes is what training computes, and nothing else of the
// source gets through.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "evaluate/check/check_leak.hpp"
#include "evaluate/write/generate.hpp"
#include "evaluate/write/latent_texts.hpp"
#include "mask/expression.hpp"
#include "model/checkpoint/save.hpp"
#include "model/model.hpp"
#include "model/random_model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

std::unique_ptr<model::Model> latent_model(const std::string& folder, const std::string& members) {
  const model::Design design =
      model::test::tiny_design(members + R"(, "type_vocab_size": 2, "num_hidden_layers": 3,
                   "latent": {"num_hidden_layers": 2, "size": 3, "kappa": 8})");
  model::save_model(folder, design, model::test::random_weights<float>(design, 3));
  return model::open_model(folder, {.precision = kernel::Precision::kF64});
}

/// Keeps logits by row, and points.
class LatentRows final : public model::Observer {
 public:
  std::vector<std::vector<double>> rows;
  std::vector<double> points;
  void logits(Index /*sequence*/, Index /*first*/, MatrixView<const double> all) override {
    for (Index i = 0; i < all.rows; ++i)
      rows.emplace_back(all.row_span(i).begin(), all.row_span(i).end());
  }
  void latents(Index /*sequence*/, Index /*layer*/, MatrixView<const double> point) override {
    points.insert(points.end(), point.row_span(0).begin(), point.row_span(0).end());
  }
};

/// Of [x ; y] as objective univae reads it, the logits of y's rows.
LatentRows run_copies(const model::Model& model, const std::vector<TokenId>& x,
                      const std::vector<TokenId>& y, const LatentPoints& given) {
  const Index s = std::ssize(x), t = std::ssize(y);
  std::vector<TokenId> ids = x;
  ids.insert(ids.end(), y.begin(), y.end());
  std::vector<Index> positions(ids.size()), segments(ids.size(), 1);
  std::iota(positions.begin(), positions.begin() + s, Index{0});
  std::iota(positions.begin() + s, positions.end(), Index{0});
  std::fill_n(segments.begin(), s, 0);
  model::Batch batch;
  batch.add(ids,
            {.positions = positions,
             .segments = segments,
             .mask = mask::parse_mask("uniae(" + std::to_string(s) + "," + std::to_string(t) + ")")
                         .bind({s + t, s + t}),
             .query_mask = {}});
  if (!given.empty()) batch.latents = {given};
  model::Request request;
  request.logits = request.latents = true;
  for (Index i = s; i < s + t; ++i) request.rows.push_back(i);
  LatentRows kept;
  model.run(batch, request, &kept);
  return kept;
}

double largest_logit_difference(const LatentRows& a, const LatentRows& b) {
  REQUIRE(a.rows.size() == b.rows.size());
  double most = 0;
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    for (std::size_t k = 0; k < a.rows[i].size(); ++k)
      most = std::max(most, std::abs(a.rows[i][k] - b.rows[i][k]));
  }
  return most;
}

LatentPoints latents_of(const model::Model& model, const std::vector<TokenId>& ids) {
  LatentPoints out;
  LatentEncoder encoder(model, 64,
                        [&](std::uint64_t, LatentPoints&& points) { out = std::move(points); });
  Sentence sentence;
  sentence.ids = ids;
  encoder.add(0, sentence);
  encoder.flush();
  return out;
}

const std::vector<TokenId> kFirstIds{2, 7, 9, 11, 8, 3};
const std::vector<TokenId> kOtherIds{2, 10, 5, 6, 12, 3};

}  // namespace

TEST_CASE("the second copy knows of the first what the points say, and nothing else") {
  for (const char* members :
       {R"("position": "rope")", R"("norm_placement": "pre", "position": "rope")",
        R"("position_embedding_type": "learned")",
        R"("norm_placement": "normformer", "position": "alibi")"}) {
    CAPTURE(std::string(members));
    const test::TempFolder folder;
    const auto model = latent_model(folder / "m", members);
    const LatentPoints points = latents_of(*model, kFirstIds);
    REQUIRE(points.size() == 6);
    for (const std::size_t first : {std::size_t{0}, std::size_t{3}}) {
      double squares = 0;
      for (std::size_t k = first; k < first + 3; ++k) squares += points[k] * points[k];
      CHECK(std::abs(squares - 1) < 1e-12);
    }
    // Encoding alone, and within the pair.
    const LatentRows pair = run_copies(*model, kFirstIds, kFirstIds, {});
    REQUIRE(pair.points.size() == points.size());
    for (std::size_t k = 0; k < points.size(); ++k)
      CHECK(std::abs(pair.points[k] - points[k]) < 1e-12);
    // Another source, with its own points: another text; with these: the same one.
    CHECK(largest_logit_difference(pair, run_copies(*model, kOtherIds, kFirstIds, {})) > 1e-3);
    CHECK(largest_logit_difference(pair, run_copies(*model, kOtherIds, kFirstIds, points)) < 1e-12);
    // One token in place of the source, as texts are written.
    CHECK(largest_logit_difference(pair, run_copies(*model, {2}, kFirstIds, points)) < 1e-12);
    // Later tokens of the second copy are hidden.
    std::vector<TokenId> changed = kFirstIds;
    changed.back() = 30;
    const LatentRows later = run_copies(*model, kFirstIds, changed, {});
    for (std::size_t i = 0; i + 1 < pair.rows.size(); ++i) CHECK(pair.rows[i] == later.rows[i]);
    CHECK(pair.rows.back() != later.rows.back());
  }
}

TEST_CASE("replaced tokens: only the points let the first copy through") {
  for (const char* members : {"", R"("position": "rope", "norm_placement": "pre")"}) {
    CAPTURE(members);
    test::TempFolder folder = test::TempFolder::in_memory();
    const auto model = latent_model(folder / "model", *members == 0 ? "\"gated\": true" : members);
    CheckInput text;
    text.ids = {5, 17, 9, 30, 2};
    LeakRequest request;
    request.prediction = mask::Prediction::kNext;
    request.second_copy = true;
    const auto leaks = [&](const CheckInput& copies) {
      LeakReport report;
      check_leak(*model, 0, copies, request, report);
      CHECK(report.pairs == 5 * 5 + (0 + 1 + 2 + 3 + 4));
      return report.layers.back().pairs;
    };
    const CheckInput copies = two_copies(text, model->design(), 1, 0);
    CHECK(leaks(copies) == 0);
    // With the points that the model makes, every token of the first copy gets through.
    CheckInput made = copies;
    made.latents.clear();
    CHECK(leaks(made) >= 25);
    CheckInput open = copies;
    open.mask = mask::parse_mask("full").bind({10, 10});
    CHECK(leaks(open) >= 25);
    CheckInput again = copies;
    CHECK_THROWS_AS(two_copies(again, model->design(), 1, 0), InputError);
  }
}

TEST_CASE("texts from points are those of the whole pass, with a cache and without") {
  for (const char* members :
       {R"("position": "rope")", R"("position": "rope", "talking_heads": "both")"}) {
    CAPTURE(std::string(members));
    const test::TempFolder folder;
    const auto model = latent_model(folder / "m", members);
    CHECK((model->make_cache(1, true) != nullptr) == (std::string(members).size() < 25));
    const LatentPoints points = latents_of(*model, kFirstIds);
    Prompt prompt;
    prompt.ids = {2, 2};
    prompt.source = 1;
    prompt.latents = points;
    GenerateOptions options;
    options.to_target = true;
    options.max_new_tokens = 100;  // the model has 12 positions
    for (const Index beams : {1, 3}) {
      options.beams.num_beams = beams;
      const std::vector<Generated> texts = generate(*model, {&prompt, 1}, options);
      REQUIRE(texts.size() == 1);
      CHECK(texts[0].ids.size() == 12);
      std::vector<TokenId> whole{2};
      whole.insert(whole.end(), texts[0].ids.begin(), texts[0].ids.end() - 1);
      const LatentRows pass = run_copies(*model, {2}, whole, points);
      double log_probability = 0;
      for (std::size_t i = 0; i < texts[0].ids.size(); ++i) {
        const std::vector<double>& row = pass.rows[i];
        const auto token = static_cast<std::size_t>(texts[0].ids[i]);
        log_probability += row[token] - log_sum(row);
        if (beams == 1) CHECK(row[token] == *std::max_element(row.begin(), row.end()));
      }
      CHECK(std::abs(log_probability - texts[0].log_probability) < 1e-9);
    }
  }
}

TEST_CASE("points between two, exchanged and drawn") {
  const model::LatentDesign latent{.layers = 2, .size = 3, .kappa = 1};
  const LatentPoints a{1, 0, 0, 0, 1, 0};
  const LatentPoints b{0, 1, 0, 0, -1, 0};
  CHECK(points_between(latent, a, b, 0) == a);
  const LatentPoints third = points_between(latent, a, b, 1.0 / 3);
  CHECK(std::abs(third[0] - std::cos(std::numbers::pi / 6)) < 1e-12);
  CHECK(std::abs(third[1] - 0.5) < 1e-12);
  const LatentPoints end = points_between(latent, a, b, 1);
  CHECK(std::abs(end[1] - 1) < 1e-12);
  CHECK(std::abs(end[4] + 1) < 1e-12);
  // Half of the way between opposite points stands at right angles to both.
  const LatentPoints half = points_between(latent, a, b, 0.5);
  CHECK(std::abs(half[4]) < 1e-12);
  CHECK(std::abs(half[3] * half[3] + half[5] * half[5] - 1) < 1e-12);
  CHECK(with_point_of(latent, a, b, 1) == LatentPoints{1, 0, 0, 0, -1, 0});
  CHECK(with_point_of(latent, a, b, 0) == LatentPoints{0, 1, 0, 0, 1, 0});
  const LatentPoints drawn = random_points(latent, 5, 2);
  CHECK(drawn == random_points(latent, 5, 2));
  CHECK(drawn != random_points(latent, 5, 3));
  CHECK(drawn != random_points(latent, 6, 2));
  CHECK(std::abs(std::inner_product(drawn.begin(), drawn.begin() + 3, drawn.begin(), 0.0) - 1) <
        1e-12);
}

TEST_CASE("models that have no bottlenecks, and bottlenecks that no model has") {
  const test::TempFolder folder;
  model::Design plain = model::test::tiny_design(R"("position": "rope")");
  CHECK(test::message_of<InputError>([&] {
          check_latents(plain);
        }).starts_with("the model has no latent bottlenecks"));
  model::save_model(folder / "plain", plain, model::test::random_weights<float>(plain, 3));
  const auto model = model::open_model(folder / "plain");
  model::Batch batch;
  batch.add(kFirstIds);
  batch.latents = {{1, 0, 0}};
  CHECK(test::message_of<InputError>([&] {
          model->run(batch, {});
        }).ends_with("3 latent numbers, expected 0"));
  batch.latents.clear();
  model::Request request;
  request.latents = true;
  CHECK(
      test::message_of<InputError>([&] {
        model->run(batch, request);
      }).ends_with("the model has no latent bottlenecks, expected one that objective univae made"));
  for (const char* members :
       {R"("latent": {"num_hidden_layers": 9})", R"("latent": {"num_hidden_layers": 1, "size": 1})",
        R"("latent": {"num_hidden_layers": 1}, "streams": "fixed_keys")",
        R"("latent": {"num_hidden_layers": 1}, "mixer": "gmlp")",
        R"("latent": {"num_hidden_layers": 1, "kappa": 0})", R"("latent": 3)"}) {
    CAPTURE(std::string(members));
    const std::string problem =
        test::message_of<InputError>([&] { model::test::tiny_design(members); });
    CHECK(problem.find(problem.find("kappa") == std::string::npos ? "latent" : "kappa") !=
          std::string::npos);
  }
}

}  // namespace masque::evaluate
