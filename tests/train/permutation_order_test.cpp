// A permutation language model is a causal one in another order: losses and all gradients of whole
// models, for every position scheme and normalizer (acceptance test 9).
//
// plm draws an order z of a sequence x, whose first c tokens are context: not predicted, all of
// them read each other (c = 0: every token is predicted). Two statements hold exactly:
//
//   1. two streams: x_z at the positions z, with the masks causal (content) and strict causal
//      (queries), gives the same losses and gradients as x with the masks of plm. The context is a
//      prefix that is read both ways.
//   2. clm, one stream: the query stream is tokens m in front of those that they predict,
//          x_z0 … x_zc−1  m x_zc  m x_zc+1 …   at   z_0 … z_c−1  z_c z_c  z_c+1 z_c+1 …
//      with the causal mask (and the prefix), but for m, which nobody reads, itself neither. The
//      next token of m is the target. m stands for the query stream's start: its row of the word
//      table is that vector (the designs have nothing between table and layers), so that its
//      gradient is the sum of both. Both models have the same head: clm's, which takes states as
//      they are, or plm's with its transform.
#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "mask/builtin.hpp"
#include "model/checkpoint/save.hpp"
#include "model/layer_list.hpp"
#include "model/variants.hpp"
#include "nn/position/position_scheme.hpp"
#include "train/network/network.hpp"
#include "train/network_cases.hpp"
#include "train_case.hpp"

namespace masque::test {

using namespace masque::train;
using model::Role;

namespace {

constexpr TokenId kVocabulary = 13;

ObjectiveOptions requested(double predict) {
  ObjectiveOptions options = objective_options();
  options.tokens.size = kVocabulary;
  options.tokens.begins_word.assign(kVocabulary, 1);
  options.perm.predict = predict;
  return options;
}

std::vector<TokenId> some_ids(std::uint64_t number, std::size_t n) {
  std::vector<TokenId> ids{2};
  for (std::size_t i = 0; i + 2 < n; ++i)
    ids.push_back(static_cast<TokenId>(5 + (number * 3 + i * i + i) % 8));
  ids.push_back(3);
  return ids;
}

/// An example of plm with its order.
struct Ordered {
  Example example;
  std::vector<Index> order;
  Index context = 0;  ///< tokens at the front of the order that read each other
};

/// The order is that of how many tokens the rows of the content stream read.
Ordered draw(const Objective& plm, const CorpusItem& item) {
  Ordered out{plm.example(item, 0), {}, 0};
  const Index n = out.example.size();
  const mask::BitMatrix bits = mask::to_bits(*out.example.mask);
  std::vector<Index> read(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) read[static_cast<std::size_t>(i)] += bits.get(i, j) ? 1 : 0;
  }
  out.order.resize(read.size());
  std::iota(out.order.begin(), out.order.end(), 0);
  std::ranges::stable_sort(out.order, {},
                           [&](Index i) { return read[static_cast<std::size_t>(i)]; });
  const Index least = std::ranges::min(read);
  out.context = least > 1 ? least : 0;
  return out;
}

mask::Mask causal_after(Index context, mask::Lengths lengths, Index lo) {
  std::vector<bool> front(static_cast<std::size_t>(lengths.keys), false);
  std::fill_n(front.begin(), context, true);
  return mask::band(lengths, lo, mask::kUnbounded) |
         (mask::rows(lengths, front) & mask::columns(lengths, front));
}

/// Statement 1.
Example sorted(const Ordered& from) {
  Example out;
  const mask::Lengths lengths{from.example.size(), from.example.size()};
  out.positions = from.order;
  for (std::size_t r = 0; r < from.order.size(); ++r) {
    const Index place = from.order[r];
    out.ids.push_back(from.example.ids[static_cast<std::size_t>(place)]);
    if (std::ranges::find(from.example.rows, place) == from.example.rows.end()) continue;
    out.rows.push_back(static_cast<Index>(r));
    out.targets.push_back(out.ids.back());
  }
  out.mask = causal_after(from.context, lengths, 0);
  out.query_mask = causal_after(from.context, lengths, 1);
  return out;
}

/// Statement 2: an example of clm, whose rows count where they are those of m.
Example doubled(const Objective& clm, const Ordered& from) {
  const Example one = sorted(from);
  std::vector<TokenId> ids;
  std::vector<Index> positions;
  std::vector<bool> content;
  for (std::size_t r = 0; r < one.ids.size(); ++r) {
    if (std::ranges::find(one.rows, static_cast<Index>(r)) != one.rows.end()) {
      ids.push_back(kMaskToken);
      positions.push_back(one.positions[r]);
      content.push_back(false);
    }
    ids.push_back(one.ids[r]);
    positions.push_back(one.positions[r]);
    content.push_back(true);
  }
  Example out = clm.example({0, ids, {}}, 0);
  out.positions = positions;
  const mask::Lengths lengths{out.size(), out.size()};
  out.mask = causal_after(from.context, lengths, 0) & mask::columns(lengths, content);
  for (const Index row : out.rows)
    out.weights.push_back(content[static_cast<std::size_t>(row)] ? 0 : 1);
  return out;
}

/// A design of three layers (two where choices by layer are of two) with two streams, its parts
/// from a case; none for cases that have something between word table and layers, or no attention
/// over tokens.
std::optional<model::Design> two_streams(const NetworkCase& one) {
  model::Design d = one.design;
  if (d.variants.detector || d.variants.latent || d.variants.late_positions > 0 ||
      d.variants.mixer != nullptr || d.streams == model::Streams::kFixedKeys ||
      d.streams == model::Streams::kTowers || d.head.kind != model::HeadKind::kMasked ||
      d.type_vocab_size > 0 || d.embedding_size != d.hidden_size ||
      d.position == model::PositionType::kSinusoidal || !d.variants.input_residual ||
      !d.variants.masks.empty() || d.head.shifted)
    return {};
  const auto scheme = model::position_scheme(d);
  if (scheme != nullptr && scheme->facts().input) return {};
  if (d.position == model::PositionType::kLearned) {
    d.position = model::PositionType::kNone;
    d.variants.position = d.head_size % 2 == 0 ? "rope" : "t5";
  }
  d.embedding_norm.reset();
  d.max_position_embeddings = 32;
  const bool by_layer = d.normalizer.is_list() || d.variants.position.is_list();
  if (d.num_hidden_layers == 2 && !by_layer) {
    d.num_hidden_layers = 3;
    d.layers.push_back(d.layers.back());
    d.layers.back().weights = 2;
  }
  d.streams = model::Streams::kOne;
  // The objective's.
  d.head.kind = model::HeadKind::kNone;
  return d;
}

/// The design with a head that has no transform.
model::Design plain(model::Design d) {
  d.head.transform = false;
  d.head.norm.reset();
  d.head.activation = model::HeadDesign().activation;
  return d;
}

/// A model of an objective, with the head of its design whatever the objective makes of it.
template <class T>
struct Trained {
  Trained(const model::Design& own, const Objective& objective) : design(own) {
    objective.adapt(design);
    const model::HeadKind kind = design.head.kind;
    design.head = own.head;
    design.head.kind = kind;
    const model::ModelPlan plan = model::saved_design(design).plan;
    map = add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    initialize_parameters(design, map, {.seed = 3, .initializer_range = 0.4}, parameters);
    for (Index i = 0; i < parameters.count(); ++i) {
      std::vector<double> dropout(static_cast<std::size_t>(parameters[i].size()));
      RandomStream(5, parameters[i].name).normal(0, dropout.size(), dropout.data());
      for (std::size_t k = 0; k < dropout.size(); ++k)
        parameters.value(i).data[k] += static_cast<T>(0.1 * dropout[k]);
    }
  }

  LossReport train(const std::vector<Example>& examples) {
    parameters.clear_gradients();
    Network<T> network(
        design, map, parameters,
        std::is_same_v<T, double> ? kernel::Precision::kF64 : kernel::Precision::kF32);
    network.prepare();
    return network.train(examples, 1 / total_weight(examples), {});
  }
  /// The row of m in a tensor like the word table.
  T* start_row(MatrixView<T> table) const { return table.row(kMaskToken); }
  MatrixView<T> word_gradient() { return parameters.gradient(map.weight(Role::kWordTable)); }
  Index query_start() const { return map.weight(Role::kQueryStart); }

  model::Design design;
  Parameters<T> parameters;
  ParameterMap map;
};

std::vector<double> gradients(Parameters<double>& of) {
  return {of.gradients().begin(), of.gradients().end()};
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double one : x) most = std::max(most, std::abs(one));
  return most;
}

/// The values of `from` in the places that `to` has too; m is where the query stream starts in
/// both.
template <class T>
void share_values(Trained<T>& from, Trained<T>& to) {
  const MatrixView<T> start = from.parameters.value(from.query_start());
  std::copy_n(start.data, start.columns,
              from.start_row(from.parameters.value(from.map.weight(Role::kWordTable))));
  to.map.for_each([&](Role role, bool bias, Index layer, Index part, Index at) {
    const Index own = bias ? from.map.bias(role, layer) : from.map.weight(role, layer, part);
    REQUIRE(own != ParameterMap::kNone);
    std::copy_n(from.parameters.value(own).data, to.parameters[at].size(),
                to.parameters.value(at).data);
  });
}

/// Three batches of the same two sequences.
struct Batches {
  Batches(const Objective& plm, const Objective& clm) {
    const std::vector<TokenId> first = some_ids(1, 14), second = some_ids(2, 9);
    for (const CorpusItem& item : {CorpusItem{0, first, {}}, CorpusItem{1, second, {}}}) {
      const Ordered one = draw(plm, item);
      context += one.context;
      permuted.push_back(one.example);
      reordered.push_back(sorted(one));
      causal.push_back(doubled(clm, one));
    }
  }
  std::vector<Example> permuted, reordered, causal;
  Index context = 0;
};

/// Both statements for one design.
void compare(const model::Design& design, const Batches& batches, const Objective& plm,
             const Objective& clm) {
  CAPTURE(design.head.transform);
  Trained<double> two(design, plm), causal(design, clm);
  CHECK(two.design.streams == model::Streams::kTwo);
  CHECK(causal.design.streams == model::Streams::kOne);
  CHECK(causal.design.mask == model::DefaultMask::kCausal);
  share_values(two, causal);
  const LossReport report = two.train(batches.permuted);
  const std::vector<double> expected = gradients(two.parameters);
  const double scale = 1e-9 * std::max(1.0, largest(expected));
  std::vector<double> words(two.word_gradient().data,
                            two.word_gradient().data + kVocabulary * design.hidden_size);
  const std::vector<double> start(
      two.parameters.gradient(two.query_start()).data,
      two.parameters.gradient(two.query_start()).data + design.hidden_size);
  CHECK(largest(start) > 1e-3);
  // 1.
  const LossReport other = two.train(batches.reordered);
  CHECK(other.loss == doctest::Approx(report.loss).epsilon(1e-12));
  const std::vector<double> found = gradients(two.parameters);
  for (std::size_t k = 0; k < found.size(); ++k) REQUIRE(std::abs(found[k] - expected[k]) <= scale);
  // 2.
  const LossReport next = causal.train(batches.causal);
  CHECK(next.loss == doctest::Approx(report.loss).epsilon(1e-12));
  for (Index c = 0; c < design.hidden_size; ++c)
    words[static_cast<std::size_t>(kMaskToken * design.hidden_size + c)] +=
        start[static_cast<std::size_t>(c)];
  causal.map.for_each([&](Role role, bool bias, Index layer, Index part, Index at) {
    CAPTURE(causal.parameters[at].name);
    const Index own = bias ? two.map.bias(role, layer) : two.map.weight(role, layer, part);
    const double* from = role == Role::kWordTable
                             ? words.data()
                             : expected.data() + two.parameters[own].gradient_offset;
    for (Index k = 0; k < causal.parameters[at].size(); ++k)
      REQUIRE(std::abs(causal.parameters.gradient(at).data[k] - from[k]) <= scale);
  });
}

}  // namespace

TEST_CASE("losses and gradients of plm are those of a causal model on the tokens in its order") {
  int compared = 0, transforms = 0;
  for (const double predict : {1.0, 0.4}) {
    const ObjectiveOptions options = requested(predict);
    const auto plm = make_objective("plm", options);
    const auto clm = make_objective("clm", options);
    const Batches batches(*plm, *clm);
    CHECK((batches.context > 0) == (predict < 1));
    for (const NetworkCase& one : network_cases()) {
      const auto design = two_streams(one);
      if (!design) continue;
      CAPTURE(one.name);
      CAPTURE(predict);
      compare(*design, batches, *plm, *clm);
      compare(plain(*design), batches, *plm, *clm);
      transforms += design->head.transform ? 1 : 0;
      ++compared;
    }
  }
  CHECK(compared >= 80);
  CHECK(transforms >= 80);
}

TEST_CASE("the same in float to 1e-6, and not without the positions or with another order") {
  const ObjectiveOptions options = requested(1);
  const auto plm = make_objective("plm", options);
  const auto clm = make_objective("clm", options);
  const Batches batches(*plm, *clm);
  int compared = 0;
  for (const NetworkCase& one : network_cases()) {
    if (one.name != "post" && one.name != "gau" && one.name != "position t5") continue;
    CAPTURE(one.name);
    const auto design = two_streams(one);
    REQUIRE(design);
    Trained<float> two(*design, *plm), causal(*design, *clm);
    share_values(two, causal);
    const double loss = two.train(batches.permuted).mean();
    CHECK(two.train(batches.reordered).mean() == doctest::Approx(loss).epsilon(1e-6));
    CHECK(causal.train(batches.causal).mean() == doctest::Approx(loss).epsilon(1e-6));
    std::vector<Example> changed = batches.causal;
    changed[0].positions.clear();
    CHECK(std::abs(causal.train(changed).mean() - loss) > 1e-4);
    changed = batches.causal;
    changed[0].mask = mask::band({changed[0].size(), changed[0].size()}, 0, mask::kUnbounded);
    CHECK(std::abs(causal.train(changed).mean() - loss) > 1e-4);
    changed = batches.permuted;
    changed[0].query_mask = changed[0].mask;
    CHECK(std::abs(two.train(changed).mean() - loss) > 1e-4);
    ++compared;
  }
  CHECK(compared == 3);
}

}  // namespace masque::test
