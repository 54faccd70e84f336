// Ridge regression against the formula, and probes of states that are known.
#include "evaluate/states/state_probe.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "evaluate/states/ridge.hpp"
#include "evaluate/states/zero_scheme.hpp"
#include "fake_model.hpp"
#include "nn/normalizer.hpp"
#include "nn/position/position_scheme.hpp"
#include "support/model_cases.hpp"

namespace masque::evaluate {
namespace {

std::vector<double> normals(std::size_t n, const char* purpose) {
  std::vector<double> out(n);
  RandomStream(1, purpose).normal(0, n, out.data());
  return out;
}

Sequence probed_sequence(Index n, Index vocabulary, Index offset) {
  Sequence sequence;
  sequence.number = static_cast<std::uint64_t>(offset);
  for (Index i = 0; i < n; ++i)
    sequence.ids.push_back(static_cast<TokenId>((7 * i * i + 3 * offset) % vocabulary));
  return sequence;
}

std::unique_ptr<model::Model> open_probed(const std::string& name,
                                          model::ModelOptions options = {}) {
  options.precision = kernel::Precision::kF64;
  if (!options.mask_token_id) options.mask_token_id = 4;
  return model::open_model(MASQUE_TEST_DATA "/model/" + name, options);
}

/// Keeps the ids of the last batch.
class WatchedModel final : public FakeModel {
 public:
  using FakeModel::FakeModel;
  std::vector<double> run(const model::Batch& batch, const model::Request& request,
                          model::Observer* observer) const override {
    ids = batch.ids;
    return FakeModel::run(batch, request, observer);
  }
  mutable std::vector<TokenId> ids;
};

}  // namespace

TEST_CASE("ridge: one feature by hand, and a fold is predicted from the others alone") {
  // Fold 0: x = 0, 2, 4 with y = 1, 3, 8 (mean 2 and 4); fold 1: one row.
  Matrix<float> x(4, 1);
  Matrix<double> y(4, 1);
  const float xs[] = {0, 2, 4, 10};
  const double ys[] = {1, 3, 8, 100};
  for (Index i = 0; i < 4; ++i) {
    x.view().at(i, 0) = xs[i];
    y.view().at(i, 0) = ys[i];
  }
  const std::vector<Index> fold = {0, 0, 0, 1};
  for (const double ridge : {0.0625, 0.5}) {
    const Matrix<double> found = ridge_predictions(x.view(), y.view(), fold, 2, ridge);
    // Σ x² = 8 and Σ xy = 14 around the means; λ = 8 · ridge.
    const double slope = 14 / (8 + 8 * ridge);
    CHECK(found.view().at(3, 0) == doctest::Approx(4 + slope * (10 - 2)));
    // One row has no variance: its own target is all that is known.
    for (Index i = 0; i < 3; ++i) CHECK(found.view().at(i, 0) == doctest::Approx(100));
  }
}

TEST_CASE("ridge: a linear law is found, noise is not, many features or few") {
  for (const Index d : {3, 40}) {
    CAPTURE(d);
    const Index n = 600;
    const auto values = normals(static_cast<std::size_t>(n * d), "features");
    const auto noise = normals(static_cast<std::size_t>(2 * n), "noise");
    Matrix<float> x(n, d);
    Matrix<double> y(n, 2);
    std::vector<Index> fold;
    for (Index i = 0; i < n; ++i) {
      double sum = 7;
      for (Index c = 0; c < d; ++c) {
        x.view().at(i, c) = static_cast<float>(values[static_cast<std::size_t>(i * d + c)] + 50);
        sum += (c % 3 == 0 ? 1.0 : -0.5) * x.view().at(i, c);
      }
      y.view().at(i, 0) = sum;
      y.view().at(i, 1) = noise[static_cast<std::size_t>(i)];
      fold.push_back(i % 5);
    }
    const Matrix<double> found = ridge_predictions(x.view(), y.view(), fold, 5, 1e-9);
    for (Index i = 0; i < n; ++i) {
      CHECK(std::abs(found.view().at(i, 0) - y.view().at(i, 0)) < 1e-5);
    }
    const Matrix<double> law = Matrix<double>::copy(y.view().middle_columns(0, 1));
    const Matrix<double> other = Matrix<double>::copy(y.view().middle_columns(1, 1));
    CHECK(r_squared(law.view(), Matrix<double>::copy(found.view().middle_columns(0, 1)).view()) >
          1 - 1e-9);
    CHECK(r_squared(other.view(), Matrix<double>::copy(found.view().middle_columns(1, 1)).view()) <
          0.02);
  }
  Matrix<double> flat = Matrix<double>::zero(4, 1);
  CHECK(std::isnan(r_squared(flat.view(), flat.view())));
}

TEST_CASE("probes read what the states hold: ids and places of a known model") {
  // Its states are (id + 10 · layer, place, id²).
  const FakeModel model(model::HeadKind::kNone);
  ProbeRequest request;
  request.ridge = 1e-9;
  const auto probe = [&](ProbeTarget target, bool segments) {
    request.target = target;
    StateProbe states(model, request);
    for (Index t = 0; t < 20; ++t) {
      Sequence sequence = probed_sequence(6 + t % 5, 12, t);
      for (Index i = 0; segments && i < sequence.size(); ++i)
        sequence.segments.push_back(sequence.ids[static_cast<std::size_t>(i)] > 5 ? 1 : 0);
      states.add(sequence);
    }
    return states.fit();
  };
  for (const ProbeRow& row : probe(ProbeTarget::kPosition, false)) {
    CHECK(row.rows == 160);
    CHECK(row.r_squared > 1 - 1e-6);
    CHECK(row.accuracy == 1);
    CHECK(row.baseline < 0.2);
  }
  const auto tokens = probe(ProbeTarget::kToken, false);
  CHECK(tokens.size() == 3);
  CHECK(tokens[2].r_squared > 0.1);
  CHECK(tokens[2].accuracy > tokens[2].baseline);
  const auto segments = probe(ProbeTarget::kSegment, true);
  CHECK(segments[0].accuracy > 0.9);
  CHECK(segments[0].accuracy > segments[0].baseline);
  CHECK_THROWS_AS(probe(ProbeTarget::kSegment, false), InputError);
}

TEST_CASE("probes of labels look at the tokens that have one") {
  const FakeModel model(model::HeadKind::kNone);
  ProbeRequest request;
  request.target = ProbeTarget::kLabel;
  request.ridge = 1e-9;
  StateProbe states(model, request);
  std::uint64_t labelled = 0, ones = 0;
  for (Index t = 0; t < 20; ++t) {
    Sequence sequence = probed_sequence(6 + t % 5, 12, t);
    for (Index i = 0; i < sequence.size(); ++i) {
      const bool none = i % 3 == 1;
      const Index label = sequence.ids[static_cast<std::size_t>(i)] > 5 ? 7 : 2;
      sequence.labels.push_back(none ? -100 : label);
      const bool inside = i >= sequence.prefix && i < sequence.size() - sequence.suffix;
      if (!none && inside) ++labelled;
      if (!none && inside && label == 7) ++ones;
    }
    states.add(sequence);
  }
  const auto rows = states.fit();
  CHECK(rows[0].rows == labelled);
  CHECK(rows[0].baseline ==
        static_cast<double>(std::max(ones, labelled - ones)) / static_cast<double>(labelled));
  CHECK(rows[0].accuracy > 0.9);
  CHECK_THROWS_AS(states.add(probed_sequence(6, 12, 1)), InputError);
}

TEST_CASE("probes: limits, hidden tokens, folds of whole texts") {
  const auto model = open_probed("bert");
  ProbeRequest request;
  request.at_mask = true;
  request.rate = 0.2;
  request.mask = 4;
  request.rows = 25;
  StateProbe probe(*model, request);
  for (Index t = 0; !probe.full(); ++t)
    probe.add(probed_sequence(15, model->design().vocab_size, t));
  const auto rows = probe.fit();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].rows == 25);
  // The embeddings of [MASK] differ by position alone, and a table of positions is linear in them.
  CHECK(rows[0].r_squared > 0.5);
  request.target = ProbeTarget::kToken;
  StateProbe tokens(*model, request);
  for (Index t = 0; !tokens.full(); ++t)
    tokens.add(probed_sequence(15, model->design().vocab_size, t));
  CHECK(tokens.fit()[0].rows == 25);
  StateProbe one(*model, request);
  one.add(probed_sequence(15, model->design().vocab_size, 1));
  CHECK_THROWS_AS(one.fit(), InputError);
  request.mask.reset();
  CHECK_THROWS_AS(StateProbe(*model, request), InputError);
}

TEST_CASE("probes: the last text hides its whole share") {
  const WatchedModel model(model::HeadKind::kNone);
  StateProbe probe(model, {.at_mask = true, .rate = 0.2, .mask = 4, .rows = 4});
  Sequence sequence;
  sequence.ids.assign(15, 7);
  for (int text = 0; text < 2; ++text) {
    probe.add(sequence);
    CHECK(std::ranges::count(model.ids, 4) == 3);
  }
  CHECK(probe.full());
}

TEST_CASE("zero probe: schemes that act on scores leave no position, others do") {
  for (const test::ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    const auto model = open_probed(one.name);
    const model::Design& design = model->design();
    const auto rows = zero_probe(*model, 7, 12);
    REQUIRE(std::ssize(rows) == design.num_hidden_layers + 1);
    bool values_move = design.convolution_size > 0;
    for (const auto& layer : design.layers) values_move = values_move || layer.rotary.values;
    // Rows of squared ReLU do not add up to 1, nor those with sinks.
    values_move =
        values_move || design.sinks || design.normalizer.text().find("relu") != std::string::npos;
    const bool added = rows[0].spread > 0;
    if (added) CHECK(rows[0].spread > 1e-3);
    for (const ZeroRow& row : rows) {
      CHECK(row.scale > 0);
      if (row.layer == 0) continue;
      CAPTURE(row.layer);
      if (added || values_move) {
        CHECK(row.spread > 1e-3);
      } else {
        CHECK(row.spread <= 1e-12);
      }
    }
  }
}

TEST_CASE("zero probe of every scheme and normalizer, at random weights") {
  for (const std::string& name : nn::position_names()) {
    CAPTURE(name);
    ZeroSchemeRequest request;
    request.position = name;
    request.length = 12;
    const nn::PositionFacts facts = nn::parse_position(name)->facts();
    const bool says = facts.input || facts.weights || facts.values;
    const auto rows = zero_probe(request);
    REQUIRE(rows.size() == 4);
    for (std::size_t l = 1; l < rows.size(); ++l) {
      if (says) {
        CHECK(rows[l].spread > 1e-3);
      } else {
        CHECK(rows[l].spread <= 1e-12);
      }
    }
    // Other tokens at the ends: what acts on scores is enough.
    request.ends = true;
    const bool none = !says && !facts.scores && !facts.query_key;
    if (none) {
      CHECK(zero_probe(request).back().spread <= 1e-12);
    } else {
      CHECK(zero_probe(request).back().spread > 1e-6);
    }
  }
  int unequal = 0;
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(std::string(normalizer->name()));
    ZeroSchemeRequest request;
    request.position = "t5";
    request.normalizer = normalizer->name();
    request.length = 12;
    const double spread = zero_probe(request).back().spread;
    // A row without a score above 0 adds up to 0 under relu².
    const bool whole = normalizer->map() == nn::ScoreMap::kExp;
    if (normalizer->divisor() == nn::Divisor::kSum && whole) {
      CHECK(spread <= 1e-12);
    } else {
      CHECK(spread > 1e-3);
      ++unequal;
    }
  }
  CHECK(unequal >= 3);  // l2, sigmoid, squared ReLU over n, …
  CHECK_THROWS_AS(zero_probe({.position = "nowhere"}), UsageError);
  CHECK_THROWS_AS(zero_probe({.length = 1}), UsageError);
  CHECK_THROWS_AS(zero_probe({.heads = 5}), UsageError);
}

}  // namespace masque::evaluate
