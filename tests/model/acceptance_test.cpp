// What masks, streams and positions promise, on whole models.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/builtin.hpp"
#include "mask/flow.hpp"
#include "mask/zoo.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"

namespace masque::model {
namespace {

using kernel::Precision;

std::string folder(const std::string& name) { return MASQUE_TEST_DATA "/model/" + name; }

std::unique_ptr<Model> open(const std::string& name, ModelOptions options = {},
                            Precision precision = Precision::kF64) {
  options.precision = precision;
  return open_model(folder(name), options);
}

// The states of one sequence; the query stream's where there are two.
class States final : public Observer {
 public:
  explicit States(bool query = false) : query_(query) {}
  void hidden_states(Index, Index state, MatrixView<const double> x) override {
    if (!query_) keep(state, x);
  }
  void query_states(Index, Index state, MatrixView<const double> x) override {
    if (query_) keep(state, x);
  }
  const Matrix<double>& at(std::size_t state) const { return states_.at(state); }
  const Matrix<double>& last() const { return states_.back(); }
  std::size_t count() const { return states_.size(); }

 private:
  void keep(Index state, MatrixView<const double> x) {
    REQUIRE(state == std::ssize(states_));
    states_.push_back(Matrix<double>::copy(x));
  }
  bool query_;
  std::vector<Matrix<double>> states_;
};

States states_of(const Model& model, const Batch& batch) {
  States seen(!batch.query_masks.empty());
  Request request;
  request.hidden_states = true;
  request.all_rows = true;
  model.run(batch, request, &seen);
  return seen;
}

Batch batch_of(std::vector<TokenId> ids) {
  Batch batch;
  batch.add(ids);
  return batch;
}

std::vector<TokenId> some_ids(Index n, Index vocabulary, Index offset = 0) {
  std::vector<TokenId> ids;
  for (Index i = 0; i < n; ++i)
    ids.push_back(static_cast<TokenId>((7 * i + 3 + offset) % vocabulary));
  return ids;
}

double row_distance(const Matrix<double>& a, Index i, const Matrix<double>& b, Index j) {
  double worst = 0;
  for (Index c = 0; c < a.columns(); ++c) {
    worst = std::max(worst, std::abs(a.view().at(i, c) - b.view().at(j, c)));
  }
  return worst;
}

std::vector<double> scores(const Model& model, const Batch& batch,
                           const std::vector<TokenId>& targets) {
  Request request;
  request.all_rows = true;
  request.targets = targets;
  return model.run(batch, request);
}

}  // namespace

TEST_CASE("T-TA: no output depends on its own token, bit by bit") {
  ModelOptions options;
  options.mask_token_id = 4;
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kF64}) {
    const auto model = open("tta", options, precision);
    for (const Index n : {1, 2, 7, 20}) {
      const std::vector<TokenId> ids = some_ids(n, model->design().vocab_size);
      const std::vector<double> one_pass = scores(*model, batch_of(ids), ids);
      for (Index i = 0; i < n; ++i) {
        CHECK(std::isfinite(one_pass[static_cast<std::size_t>(i)]));
        for (const TokenId other : {0, 5, 17}) {
          std::vector<TokenId> changed = ids;
          changed[static_cast<std::size_t>(i)] = other;
          // Its score is also its own leave-one-out score.
          const std::vector<double> found = scores(*model, batch_of(changed), ids);
          CHECK(found[static_cast<std::size_t>(i)] == one_pass[static_cast<std::size_t>(i)]);
        }
      }
    }
  }
}

TEST_CASE("a diagonal mask alone leaks from the second layer on") {
  ModelOptions options;
  options.masks = mask::parse_mask_layers("tta");
  options.query = mask::QueryStart::kPosition;
  options.mask_token_id = 4;
  const auto model = open("bert", options);
  const std::vector<TokenId> ids = some_ids(6, model->design().vocab_size);
  std::vector<TokenId> changed = ids;
  changed[2] = 40;
  const States before = states_of(*model, batch_of(ids));
  const States after = states_of(*model, batch_of(changed));
  CHECK(row_distance(before.at(1), 2, after.at(1), 2) == 0);
  CHECK(row_distance(before.at(2), 2, after.at(2), 2) > 1e-3);
}

TEST_CASE("a query stream over a bidirectional content stream leaks from the second layer on") {
  const auto model = open("xlnet_two_streams");
  const std::vector<TokenId> ids = some_ids(6, model->design().vocab_size);
  std::vector<TokenId> changed = ids;
  changed[2] = 40;
  const auto run = [&](const std::vector<TokenId>& tokens) {
    Batch batch = batch_of(tokens);
    batch.query_masks.emplace_back(mask::parse_mask("tta").bind({6, 6}));
    return states_of(*model, batch);
  };
  const States before = run(ids);
  const States after = run(changed);
  CHECK(row_distance(before.at(1), 2, after.at(1), 2) == 0);
  CHECK(row_distance(before.at(2), 2, after.at(2), 2) > 1e-3);
}

// What a changed token changes is what follow_flow says.
void check_flow(const Model& model, const mask::Mask& mask, mask::FlowRequest flow,
                bool two_streams, const std::string& name) {
  CAPTURE(name);
  const Index n = mask.lengths().keys;
  flow.layers.assign(static_cast<std::size_t>(model.design().num_hidden_layers), mask);
  const mask::Mask content = mask | mask::band({n, n}, 0, 0);
  if (two_streams) flow.content.assign(flow.layers.size(), content);
  const mask::FlowResult expected = mask::follow_flow(flow);
  const auto run = [&](const std::vector<TokenId>& tokens) {
    Batch batch = batch_of(tokens);
    batch.masks.emplace_back(two_streams ? content : mask);
    if (two_streams) batch.query_masks.emplace_back(mask);
    return states_of(model, batch);
  };
  const std::vector<TokenId> ids = some_ids(n, model.design().vocab_size);
  const States before = run(ids);
  for (Index j = 0; j < n; ++j) {
    std::vector<TokenId> changed = ids;
    changed[static_cast<std::size_t>(j)] =
        static_cast<TokenId>((ids[static_cast<std::size_t>(j)] + 11) % 30);
    const States after = run(changed);
    for (Index i = 0; i < n; ++i) {
      CAPTURE(i);
      CAPTURE(j);
      const bool moved = row_distance(before.last(), i, after.last(), i) != 0;
      CHECK(moved == expected.reach.get(i, j));
    }
  }
}

TEST_CASE("perturbed tokens reach the outputs that mask-viz flow names, for every mask") {
  const auto one = open("bert");
  ModelOptions options;
  options.mask_token_id = 4;
  const auto tta = open("tta", options);
  const auto two = open("xlnet_two_streams");
  int checked = 0;
  for (const mask::MaskKind* kind : mask::mask_kinds()) {
    if (kind->name == "explicit") continue;
    const mask::MaskExpression expression = mask::parse_mask(kind->example);
    const mask::Mask mask =
        expression.bind(expression.own_lengths().value_or(mask::Lengths{16, 16}));
    const std::string name(kind->name);
    check_flow(*one, mask, {}, false, name);
    mask::FlowRequest fixed;
    fixed.keys = mask::KeySource::kInput;
    fixed.query = mask::QueryStart::kPosition;
    check_flow(*tta, mask, fixed, false, name + " (T-TA)");
    mask::FlowRequest streams;
    streams.query = mask::QueryStart::kPosition;
    check_flow(*two, mask, streams, true, name + " (two streams)");
    ++checked;
  }
  CHECK(checked >= 35);
}

TEST_CASE("a permutation language model is a causal one in another order") {
  const auto model = open("roformer");
  const Index n = 12;
  const std::vector<TokenId> ids = some_ids(n, model->design().vocab_size);
  const std::vector<Index> order = {5, 0, 11, 3, 7, 1, 9, 2, 10, 4, 8, 6};
  std::vector<Index> rank(order.size());
  Batch sorted;
  std::vector<TokenId> tokens;
  for (std::size_t r = 0; r < order.size(); ++r) {
    rank[static_cast<std::size_t>(order[r])] = static_cast<Index>(r);
    tokens.push_back(ids[static_cast<std::size_t>(order[r])]);
  }
  sorted.add(tokens);
  sorted.positions = order;
  sorted.masks.emplace_back(mask::parse_mask("causal").bind({n, n}));
  Batch permuted = batch_of(ids);
  permuted.masks.emplace_back(mask::rank_order(rank, rank, 0));
  const States a = states_of(*model, permuted);
  const States b = states_of(*model, sorted);
  for (Index i = 0; i < n; ++i) {
    CHECK(row_distance(a.last(), i, b.last(), rank[static_cast<std::size_t>(i)]) <= 1e-12);
  }
}

TEST_CASE("hiding columns is removing tokens") {
  for (const char* name : {"bert", "roformer", "xlnet", "t5_encoder", "deberta_v3", "gau_alpha"}) {
    CAPTURE(name);
    const auto model = open(name);
    const Index n = 14;
    const std::vector<TokenId> ids = some_ids(n, model->design().vocab_size);
    Batch whole = batch_of(ids);
    whole.masks.emplace_back(mask::parse_mask("keep(0,2-4,7,9,13)").bind({n, n}));
    const std::vector<Index> kept = {0, 2, 3, 4, 7, 9, 13};
    Batch rest;
    std::vector<TokenId> tokens;
    tokens.reserve(kept.size());
    for (const Index i : kept) tokens.push_back(ids[static_cast<std::size_t>(i)]);
    rest.add(tokens);
    rest.positions = kept;
    const States a = states_of(*model, whole);
    const States b = states_of(*model, rest);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      CHECK(row_distance(a.last(), kept[i], b.last(), static_cast<Index>(i)) <= 1e-12);
    }
  }
}

TEST_CASE("packed documents are separate documents") {
  for (const char* name : {"bert", "roberta", "gpt2", "gpt_neox", "llama", "roformer", "t5_encoder",
                           "mpnet", "deberta_v3", "modernbert", "xlnet", "gau_alpha"}) {
    CAPTURE(name);
    const auto model = open(name);
    const bool causal = model->design().mask == DefaultMask::kCausal;
    const std::vector<Index> lengths = {3, 1, 9};
    Batch packed, apart;
    std::vector<TokenId> all;
    Index offset = 0;
    for (const Index n : lengths) {
      const std::vector<TokenId> ids = some_ids(n, model->design().vocab_size, offset++);
      apart.add(ids);
      all.insert(all.end(), ids.begin(), ids.end());
      for (Index i = 0; i < n; ++i) packed.positions.push_back(i);
    }
    packed.add(all);
    packed.masks.emplace_back(
        mask::parse_mask(causal ? "document(3,1,9) & causal" : "document(3,1,9)").bind({13, 13}));
    const States together = states_of(*model, packed);
    Index row = 0;
    for (Index s = 0; s < 3; ++s) {
      const std::vector<TokenId> ids(
          apart.ids.begin() + apart.begins[static_cast<std::size_t>(s)],
          apart.ids.begin() + apart.begins[static_cast<std::size_t>(s) + 1]);
      const States alone = states_of(*model, batch_of(ids));
      for (Index i = 0; i < alone.last().rows(); ++i, ++row) {
        CHECK(row_distance(together.last(), row, alone.last(), i) <= 1e-12);
      }
    }
  }
}

TEST_CASE("a GAU that sees only itself is a gated feed-forward layer") {
  ModelOptions options;
  options.masks = mask::parse_mask_layers("diagonal");
  const auto model = open("gau_alpha_softmax", options);
  const LoadedModel<double> loaded = load_model<double>(folder("gau_alpha_softmax"));
  const LayerWeights<double>& layer = loaded.weights.layers.front();
  const std::vector<TokenId> ids = some_ids(5, model->design().vocab_size);
  const States seen = states_of(*model, batch_of(ids));
  const Index hidden = model->design().hidden_size;
  const Index e = layer.output.weight.view.columns;
  for (Index i = 0; i < 5; ++i) {
    std::vector<double> between(static_cast<std::size_t>(2 * e));
    for (Index o = 0; o < 2 * e; ++o) {
      double sum = layer.gated_input.bias ? layer.gated_input.bias.view.at(0, o) : 0;
      for (Index c = 0; c < hidden; ++c) {
        sum += seen.at(0).view().at(i, c) * layer.gated_input.weight.view.at(o, c);
      }
      between[static_cast<std::size_t>(o)] = sum / (1 + std::exp(-sum));
    }
    std::vector<double> y(static_cast<std::size_t>(hidden));
    double squares = 0;
    for (Index c = 0; c < hidden; ++c) {
      double sum = layer.output.bias ? layer.output.bias.view.at(0, c) : 0;
      for (Index o = 0; o < e; ++o) {
        sum += between[static_cast<std::size_t>(o)] * between[static_cast<std::size_t>(e + o)] *
               layer.output.weight.view.at(c, o);
      }
      y[static_cast<std::size_t>(c)] = seen.at(0).view().at(i, c) + sum;
      squares += y[static_cast<std::size_t>(c)] * y[static_cast<std::size_t>(c)];
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + 1e-12);
    for (Index c = 0; c < hidden; ++c) {
      // Sums of doubles in another order.
      CHECK(seen.at(1).view().at(i, c) ==
            doctest::Approx(y[static_cast<std::size_t>(c)] * scale).epsilon(1e-13));
    }
  }
}

TEST_CASE("a sequence without positions next to one with them numbers its own") {
  const auto model = open("roberta");
  const auto pad = static_cast<TokenId>(model->design().pad_token_id.value());
  const std::vector<TokenId> padded = {5, pad, 7, 8, pad, 9};
  const States alone = states_of(*model, batch_of(padded));
  Batch both = batch_of(padded);
  both.positions.assign(6, Batch::kNoPosition);
  both.add(std::vector<TokenId>{5, 6, 7});
  both.positions.insert(both.positions.end(), {3, 2, 1});
  Request request;
  request.hidden_states = true;
  class First final : public Observer {
   public:
    void hidden_states(Index s, Index, MatrixView<const double> x) override {
      if (s == 0) last = Matrix<double>::copy(x);
    }
    Matrix<double> last;
  } first;
  model->run(both, request, &first);
  for (Index i = 0; i < 6; ++i) CHECK(row_distance(alone.last(), i, first.last, i) == 0);
  // Padding has −1, which is a row of RoBERTa's table and none of BERT's.
  Batch spelled = batch_of(padded);
  spelled.positions = {0, -1, 1, 2, -1, 3};
  const States same = states_of(*model, spelled);
  for (Index i = 0; i < 6; ++i) CHECK(row_distance(alone.last(), i, same.last(), i) == 0);
  Batch wrong = batch_of({5, 6});
  wrong.positions = {0, -2};
  CHECK_THROWS_AS(model->run(wrong, request, &first), InputError);
  wrong.positions = {0, -1};
  CHECK_THROWS_AS(open("bert")->run(wrong, request, &first), InputError);
}

TEST_CASE("another normalizer replaces the model's") {
  const auto last = [](const char* name, const char* normalizer) {
    ModelOptions options;
    options.normalizer = normalizer;
    const auto model = open(name, options);
    return Matrix<double>::copy(
        states_of(*model, batch_of(some_ids(9, model->design().vocab_size))).last().view());
  };
  for (const char* name : {"bert", "gpt2", "gau_alpha_softmax"}) {
    CAPTURE(name);
    const Matrix<double> own = last(name, "softmax");
    const Matrix<double> plus = last(name, "softmax_plus");
    const Matrix<double> log_n = last(name, "log_n(base=512, clip=16)");
    CHECK(std::ranges::equal(own.span(), last(name, "").span()));
    double apart = 0;
    for (Index i = 0; i < 9; ++i) {
      CHECK(row_distance(plus, i, log_n, i) <= 1e-12);
      apart = std::max(apart, row_distance(own, i, plus, i));
    }
    CHECK(apart > 1e-3);
  }
  CHECK_THROWS_AS(last("bert", "soft"), UsageError);
}

TEST_CASE("rows that begin alike are projected once, with the same bits") {
  for (const char* name : {"bert", "roberta", "roformer", "t5_encoder", "deberta_v2_conv"}) {
    CAPTURE(name);
    const auto model = open(name);
    const std::vector<TokenId> ids = some_ids(9, model->design().vocab_size);
    Batch copies;
    std::vector<Batch> alone;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      std::vector<TokenId> changed = ids;
      changed[t] = 7;
      copies.add(changed);
      alone.push_back(batch_of(changed));
    }
    class All final : public Observer {
     public:
      void hidden_states(Index s, Index state, MatrixView<const double> x) override {
        seen[{s, state}] = Matrix<double>::copy(x);
      }
      std::map<std::pair<Index, Index>, Matrix<double>> seen;
    } together;
    Request request;
    request.hidden_states = true;
    model->run(copies, request, &together);
    const Index states = model->design().num_hidden_layers + 1;
    REQUIRE(std::ssize(together.seen) == states * std::ssize(ids));
    for (Index t = 0; t < std::ssize(ids); ++t) {
      const States own = states_of(*model, alone[static_cast<std::size_t>(t)]);
      for (Index l = 0; l < states; ++l) {
        CHECK(std::ranges::equal(together.seen.at({t, l}).span(),
                                 own.at(static_cast<std::size_t>(l)).span()));
      }
    }
  }
}

TEST_CASE("keys from the input change nothing in the first layer, convolution included") {
  for (const char* name :
       {"bert", "gpt2", "llama", "deberta_v2_conv", "modernbert", "t5_encoder"}) {
    CAPTURE(name);
    const auto usual = open(name);
    ModelOptions options;
    options.keys = mask::KeySource::kInput;
    const auto input = open(name, options);
    const Batch batch = batch_of(some_ids(9, usual->design().vocab_size));
    const States a = states_of(*usual, batch);
    const States b = states_of(*input, batch);
    for (Index i = 0; i < 9; ++i) CHECK(row_distance(a.at(1), i, b.at(1), i) == 0);
    CHECK(row_distance(a.last(), 3, b.last(), 3) > 1e-3);
  }
}

TEST_CASE("what a model cannot do is said") {
  const auto model = open("bert", {}, Precision::kF32);
  const Index vocabulary = model->design().vocab_size;
  CHECK_THROWS_AS(states_of(*model, batch_of({static_cast<TokenId>(vocabulary)})), InputError);
  CHECK_THROWS_AS(states_of(*model, batch_of({-1})), InputError);
  CHECK_THROWS_AS(states_of(*model, batch_of(some_ids(500, vocabulary))), InputError);
  Batch typed = batch_of({1, 2});
  typed.segments = {0, 7};
  CHECK_THROWS_AS(states_of(*model, typed), InputError);
  Batch streams = batch_of({1, 2});
  streams.query_masks.emplace_back(mask::parse_mask("tta").bind({2, 2}));
  CHECK_THROWS_AS(states_of(*model, streams), InputError);
  ModelOptions restricted;
  restricted.keys = mask::KeySource::kInput;
  const auto two = open("xlnet_two_streams", restricted, Precision::kF32);
  CHECK_THROWS_AS(states_of(*two, streams), UsageError);
  const auto headless = open("bert_headless", {}, Precision::kF32);
  CHECK_THROWS_AS(scores(*headless, batch_of({1, 2}), {1, 2}), InputError);
  ModelOptions options;
  options.masks = mask::parse_mask_layers("causal, full, full, full, full");
  CHECK_THROWS_AS(open("bert", options), UsageError);
}

}  // namespace masque::model
