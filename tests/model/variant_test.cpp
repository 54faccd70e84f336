// Every variant of the registries as a model: saved, opened, run in both precisions, compared with
// its definition; rows and sequences that share a batch do not matter; T-TA does not leak.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "kernel/rotary.hpp"
#include "mask/expression.hpp"
#include "model/checkpoint/save.hpp"
#include "model/detector.hpp"
#include "model/layer_list.hpp"
#include "model/masks.hpp"
#include "model/model.hpp"
#include "model/random_model.hpp"
#include "model/variants.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using masque::test::TempFolder;

/// Rows of logits, states and weights of one sequence.
class Seen final : public Observer {
 public:
  void logits(Index s, Index first, MatrixView<const float> x) override { keep(s, first, x); }
  void logits(Index s, Index first, MatrixView<const double> x) override { keep(s, first, x); }
  void attention(Index, Index, Index, MatrixView<const float>) override { count(maps); }
  void attention(Index, Index, Index, MatrixView<const double>) override { count(maps); }
  void hidden_states(Index, Index, MatrixView<const float>) override { count(states); }
  void hidden_states(Index, Index, MatrixView<const double>) override { count(states); }

  std::map<Index, std::vector<std::vector<double>>> rows;  ///< by sequence
  std::atomic<int> maps = 0;                               ///< heads of one layer may share time
  std::atomic<int> states = 0;

 private:
  static void count(std::atomic<int>& what) { ++what; }
  template <class T>
  void keep(Index s, Index, MatrixView<const T> x) {
    for (Index i = 0; i < x.rows; ++i) rows[s].emplace_back(x.row(i), x.row(i) + x.columns);
  }
};

const ModelOptions kExact = [] {
  ModelOptions options;
  options.precision = kernel::Precision::kF64;
  return options;
}();

const std::vector<TokenId> kIds{7, 3, 22, 39, 5, 11, 7, 30, 2};

std::unique_ptr<Seen> run(const Model& model, const std::vector<std::vector<TokenId>>& texts,
                          std::vector<Index> rows = {}, bool everything = false) {
  Batch batch;
  for (const auto& text : texts) batch.add(text);
  Request request;
  request.logits = true;
  request.all_rows = rows.empty();
  request.rows = std::move(rows);
  request.hidden_states = everything;
  request.attentions = everything && model.design().variants.mixer == nullptr;
  auto seen = std::make_unique<Seen>();
  model.run(batch, request, seen.get());
  return seen;
}

double worst(const std::vector<std::vector<double>>& a, const Matrix<double>& b) {
  double result = 0;
  REQUIRE(std::ssize(a) == b.rows());
  for (Index i = 0; i < b.rows(); ++i) {
    const auto& row = a[static_cast<std::size_t>(i)];
    REQUIRE(std::ssize(row) == b.columns());
    for (Index c = 0; c < b.columns(); ++c) {
      result = std::max(result, std::abs(row[static_cast<std::size_t>(c)] - b.view().at(i, c)) /
                                    (1 + std::abs(b.view().at(i, c))));
    }
  }
  return result;
}

ModelWeights<double> in_double(const std::string& path) { return load_model<double>(path).weights; }

/// Saves the design with random weights and runs it in all ways.
void check_variant(const Design& design) {
  TempFolder folder = TempFolder::in_memory();
  const std::string path = folder / "saved";
  save_model(path, design, test::random_weights<float>(design, 5));
  REQUIRE(same_design(load_model<float>(path).design, design));
  const auto in_float = open_model(path);
  const auto exact = open_model(path, kExact);

  const auto whole = run(*exact, {kIds})->rows[0];
  if (design.streams == Streams::kOne || design.streams == Streams::kFixedKeys) {
    std::optional<mask::BlockMap> mask;
    if (design.mask != DefaultMask::kFull) {
      const auto n = std::ssize(kIds);
      mask.emplace(mask::parse_mask(default_mask_name(design.mask)).bind({n, n}));
    }
    const Matrix<double> plain =
        test::plain_logits(design, in_double(path), kIds, mask ? &*mask : nullptr);
    CHECK(worst(whole, plain) < 1e-9);
  }
  Matrix<double> reference(std::ssize(whole), 40);
  for (Index i = 0; i < reference.rows(); ++i) {
    std::ranges::copy(whole[static_cast<std::size_t>(i)], reference.view().row(i));
  }
  const auto rough = run(*in_float, {kIds})->rows[0];
  CHECK(worst(rough, reference) < 2e-4);

  // The same bits whatever shares the batch, whichever rows are wanted, whatever else is shown.
  const std::vector<TokenId> other{1, 38, 7, 7};
  const auto together = run(*in_float, {other, kIds, other})->rows[1];
  CHECK(together == rough);
  const auto some = run(*in_float, {kIds, other}, {2, 7, 9})->rows[0];
  CHECK(some == std::vector{rough[2], rough[7]});
  const auto shown = run(*in_float, {kIds}, {}, true);
  CHECK(shown->rows[0] == rough);
  CHECK(shown->states == 3);
  const bool mixes = design.variants.mixer != nullptr;
  CHECK(shown->maps == (mixes ? 0 : 2 * value_heads(design)));

  if (design.streams == Streams::kFixedKeys) {
    for (std::size_t i = 0; i < kIds.size(); ++i) {
      std::vector<TokenId> changed = kIds;
      changed[i] = 17;
      auto now = run(*in_float, {changed})->rows[0];
      CHECK(now[i] == rough[i]);
      CHECK(now != rough);
    }
  }
}

std::string position_member(const std::string& name) {
  const bool causal = name == "xpos";
  return "\"position\": \"" + name + "\"" + (causal ? ", \"mask\": \"causal\"" : "");
}

TEST_CASE("models of every position scheme") {
  for (const std::string& name : nn::position_names()) {
    CAPTURE(name);
    const Design design = test::tiny_design(position_member(name));
    CHECK(saved_design(design).family == "masque");
    check_variant(design);
  }
}

TEST_CASE("one set of position parameters for all layers") {
  for (const char* name : {"t5", "shaw", "transformer_xl", "urpe"}) {
    CAPTURE(name);
    const Design shared =
        test::tiny_design(std::string("\"position\": \"") + name + "\", \"position_shared\": true");
    CHECK(shares_position(shared));
    check_variant(shared);
    const ModelWeights<float> weights = test::random_weights<float>(shared, 1);
    CHECK(weights.layers[0].position.empty());
    CHECK(weights.position.size() == position_parameters(shared).size());
  }
}

TEST_CASE("T-TA of every position scheme reads every token but its own") {
  for (const std::string& name : nn::position_names()) {
    CAPTURE(name);
    if (name == "xpos" || name == "convolutional") continue;  // causal; reads neighbours
    check_variant(test::tiny_design("\"streams\": \"fixed_keys\", \"position\": \"" + name + "\""));
  }
}

/// Keeps states and last states of one sequence.
class StatesOf final : public Observer {
 public:
  void hidden_states(Index, Index state, MatrixView<const double> x) override {
    states.resize(std::max(states.size(), static_cast<std::size_t>(state) + 1));
    states[static_cast<std::size_t>(state)] = Matrix<double>::copy(x);
  }
  void last_states(Index, Index, MatrixView<const double> x) override {
    last = Matrix<double>::copy(x);
  }

  std::vector<Matrix<double>> states;
  Matrix<double> last;
};

StatesOf states_of(const Model& model, const std::vector<TokenId>& ids) {
  Batch batch;
  batch.add(ids);
  Request request;
  request.all_rows = request.hidden_states = request.last_states = true;
  StatesOf found;
  model.run(batch, request, &found);
  return found;
}

TEST_CASE("two towers are two models side by side, one of each direction") {
  for (const char* more : {"", ", \"norm_placement\": \"pre\"", ", \"position\": \"rope\"",
                           ", \"layer_kind\": \"gated_attention\""}) {
    CAPTURE(more);
    Design design = test::tiny_design(std::string("\"num_hidden_layers\": 4, \"streams\": "
                                                  "\"towers\"") +
                                      more);
    CHECK(layers_text(design.variants.masks) == "2*causal, 2*reverse");
    CHECK(saved_design(design).family == "masque");
    const TempFolder folder = TempFolder::in_memory();
    const ModelWeights<float> weights = test::random_weights<float>(design, 5);
    save_model(folder / "both", design, weights);
    REQUIRE(same_design(load_model<float>(folder / "both").design, design));
    const auto model = open_model(folder / "both", kExact);
    const StatesOf both = states_of(*model, kIds);
    const auto n = std::ssize(kIds);
    const Index width = design.hidden_size;
    REQUIRE(both.last.columns() == 2 * width);
    for (const bool second : {false, true}) {
      Design tower = design;
      tower.streams = Streams::kOne;
      tower.num_hidden_layers = 2;
      tower.layers.resize(2);
      set_mask(second ? "reverse" : "causal", tower);
      tower.head = {};
      ModelWeights<float> own = weights;
      own.head_transform = own.decoder = {};
      own.head_norm = {};
      own.layers.clear();
      for (std::size_t l = second ? 2 : 0; own.layers.size() < 2; ++l)
        own.layers.push_back(weights.layers[l]);
      const std::string path = folder / (second ? "second" : "first");
      save_model(path, tower, own);
      const StatesOf one = states_of(*open_model(path, kExact), kIds);
      for (Index i = 0; i < n; ++i) {
        const Index row = second ? i + 1 : i - 1;
        for (Index c = 0; c < width; ++c) {
          const double last = both.last.view().at(i, c + (second ? width : 0));
          if (row >= 0 && row < n) {
            CHECK(last == one.last.view().at(row, c));
            const std::size_t state = second ? 4 : 2;
            CHECK(both.states[state].view().at(i, c) == last);
            CHECK(both.states[state - 1].view().at(i, c) == one.states[1].view().at(row, c));
          } else {
            CHECK(both.states[second ? 4 : 2].view().at(i, c) == 0);
          }
        }
      }
    }
    // No position reads its own token, in any layer.
    for (std::size_t i = 0; i < kIds.size(); ++i) {
      std::vector<TokenId> changed = kIds;
      changed[i] = 17;
      const StatesOf now = states_of(*model, changed);
      const auto same_row = [&](const Matrix<double>& a, const Matrix<double>& b) {
        return std::ranges::equal(a.view().row_span(static_cast<Index>(i)),
                                  b.view().row_span(static_cast<Index>(i)));
      };
      CHECK(same_row(now.last, both.last));
      for (std::size_t l = 1; l < both.states.size(); ++l)
        CHECK(same_row(now.states[l], both.states[l]));
    }
    // The same bits whatever shares the batch and whichever rows are wanted.
    const std::vector<TokenId> other{1, 38, 7, 7};
    const auto rough = open_model(folder / "both");
    const auto whole = run(*rough, {kIds})->rows[0];
    CHECK(run(*rough, {other, kIds, other})->rows[1] == whole);
    CHECK(run(*rough, {kIds, other}, {2, 7, 9})->rows[0] == std::vector{whole[2], whole[7]});
  }
  const auto problem = [](const std::string& members) {
    return masque::test::message_of<InputError>([&] { test::tiny_design(members); });
  };
  const std::string towers = "\"streams\": \"towers\", ";
  CHECK(masque::test::contains(problem(towers + "\"num_hidden_layers\": 3"),
                               "expected an even number"));
  CHECK(masque::test::contains(problem(towers + "\"mixer\": \"fnet\""), "expected attention"));
  CHECK(masque::test::contains(problem(towers + "\"previous_scores\": \"one_layer\""),
                               "cannot be combined with"));
  CHECK(masque::test::contains(problem(towers + "\"head_transform\": false"), "reads two towers"));
}

TEST_CASE("models of every mixer") {
  for (const nn::Mixer* mixer : nn::mixers()) {
    const std::string name(mixer->info().name);
    CAPTURE(name);
    const std::string member = "\"mixer\": \"" + name + "\"";
    check_variant(test::tiny_design(member));
    check_variant(test::tiny_design(member + ", \"norm_placement\": \"pre\", \"gated\": true"));
    if (mixer->info().masks != nn::MaskSupport::kFull) {
      check_variant(test::tiny_design(member + ", \"mask\": \"causal\""));
    }
    const std::string tta = member + ", \"streams\": \"fixed_keys\"";
    if (mixer->info().reads_own) {
      CHECK_THROWS_AS(test::tiny_design(tta), InputError);
    } else if (mixer->info().masks == nn::MaskSupport::kAny) {
      check_variant(test::tiny_design(tta));
      check_variant(test::tiny_design(tta + ", \"norm_placement\": \"pre\""));
    }
  }
}

TEST_CASE("models and gated units of every normalizer") {
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    const std::string name(normalizer->name());
    CAPTURE(name);
    const std::string member = "\"normalizer\": \"" + name + "\"";
    check_variant(test::tiny_design(member));
    check_variant(test::tiny_design(member + ", \"layer_kind\": \"gated_attention\", "
                                             "\"attention_key_size\": 8, \"position\": \"rope\""));
  }
}

TEST_CASE("gated units of every position scheme") {
  for (const std::string& name : nn::position_names()) {
    CAPTURE(name);
    const std::string member =
        position_member(name) + ", \"layer_kind\": \"gated_attention\", \"attention_key_size\": 8";
    check_variant(test::tiny_design(member + ", \"normalizer\": \"squared_relu\""));
    check_variant(test::tiny_design(member + ", \"norm_placement\": \"pre\", \"norm\": \"rms\""));
  }
}

TEST_CASE("layers of the zoo: talking heads, previous scores, norms, sizes") {
  for (const char* members : {
           R"("talking_heads": "before")",
           R"("talking_heads": "after", "position": "alibi")",
           R"("talking_heads": "both", "softmax_heads": 5)",
           R"("talking_heads": "both", "softmax_heads": 1, "position": "urpe", "mask": "causal")",
           R"("talking_heads": "after", "value_heads": 3)",
           R"("talking_heads": "both", "softmax_heads": 3, "value_heads": 4, "value_size": 3,
              "norm_placement": "normformer")",
           R"("talking_heads": "both", "softmax_heads": 3, "value_heads": 1, "position": "shaw",
              "previous_scores": "accumulated", "mask": "causal")",
           R"("talking_heads": "after", "value_heads": 3, "position": "urpe", "head_size": 4)",
           R"("talking_heads": "after", "value_heads": 1, "streams": "fixed_keys",
              "position": "rope")",
           R"("largest_keys": 3)",
           R"("largest_keys": 2, "mask": "causal", "position": "alibi", "normalizer": "log_n")",
           R"("largest_keys": 4, "talking_heads": "both", "streams": "fixed_keys")",
           R"("largest_keys": 3, "layer_kind": "gated_attention", "attention_key_size": 6)",
           R"("talking_heads": "both", "position": "shaw", "norm_placement": "pre")",
           R"("previous_scores": "one_layer")",
           R"("previous_scores": "accumulated", "mask": "causal", "position": "rope")",
           R"("previous_scores": "accumulated", "talking_heads": "both", "position": "urpe")",
           R"("previous_scores": "accumulated", "streams": "fixed_keys")",
           R"("talking_heads": "both", "streams": "fixed_keys", "position": "xlnet")",
           R"("previous_scores": "one_layer", "layer_kind": "gated_attention",
              "attention_key_size": 6)",
           R"("residual_scale": 1.5)",
           R"("residual_scale": 2.5, "layer_kind": "gated_attention", "attention_key_size": 6)",
           R"("norm": "rms", "norm_weights": false, "use_bias": false, "head_transform": false)",
           R"("norm_placement": "parallel", "gated": true, "hidden_act": "silu")",
           R"("norm_placement": "pre", "norm": "rms", "layer_norm_eps": 1e-5)",
           R"("norm_placement": "sandwich")",
           R"("norm_placement": "sandwich", "norm_weights": false, "position": "rope")",
           R"("norm_placement": "rezero", "gated": true)",
           R"("norm_placement": "rezero", "streams": "fixed_keys")",
           R"("norm_placement": "admin")",
           R"("norm_placement": "admin", "streams": "fixed_keys", "norm": "rms")",
           R"("norm_placement": "normformer")",
           R"("norm_placement": "normformer", "gated": true, "norm": "rms", "use_bias": false)",
           R"("norm_placement": "normformer", "num_key_value_heads": 1, "value_size": 10)",
           R"("norm_placement": "normformer", "mixer": "gmlp")",
           R"("norm_placement": "output")",
           R"("norm_placement": "output", "norm": "rms", "query_key_norm": "width", "gated": true,
              "num_key_value_heads": 1, "norm_weight_offset": 1)",
           R"("norm_placement": "output", "streams": "fixed_keys", "residual_multiplier": 0.5)",
           R"("norm_placement": "parallel_shared", "gated": true, "query_key_norm": "each_head")",
           R"("norm_placement": "parallel_shared", "streams": "fixed_keys")",
           R"("norm_placement": "pre", "query_key_norm": "head", "norm": "rms", "mask": "causal",
              "attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.5)",
           R"("query_key_norm": "head", "position": "rope", "residual_scale": 1.5)",
           R"("query_key_norm": "each_head", "norm_weights": false, "position": "alibi",
              "attn_logit_softcapping": 0.7)",
           R"("clip_qkv": 0.3, "num_key_value_heads": 1, "streams": "fixed_keys")",
           R"("clip_qkv": 0.5, "query_key_norm": "width", "talking_heads": "both",
              "attn_logit_softcapping": 1)",
           R"("clip_qkv": 0.6, "clip_after_norms": true, "query_key_norm": "width",
              "position": "rope")",
           R"("norm_placement": "rezero", "residual_multiplier": 0.4)",
           R"("norm_placement": "sandwich", "residual_multiplier": 1.4, "norm_weight_offset": 1)",
           R"("attn_logit_softcapping": 0.5, "normalizer": "log_n", "embedding_scale": 3)",
           R"("attn_logit_softcapping": 0.5, "layer_kind": "gated_attention",
              "attention_key_size": 6)",
           R"("head_size": 4, "value_size": 10)",
           R"("head_size": 4, "value_size": 10, "num_key_value_heads": 1, "talking_heads": "both")",
           R"("embedding_size": 8, "position": "learned")",
           R"("embedding_size": 8, "head_act": "tanh", "head_scale": 0.5)",
           R"("head_shifted": true)",
           R"("head_shifted": true, "norm_placement": "pre", "head_transform": false,
              "position": "rope", "mask": "causal", "head": "masked")",
           R"("head_shifted": true, "mixer": "gmlp", "final_logit_softcapping": 2)",
           R"("type_vocab_size": 2, "tie_word_embeddings": false)",
           R"("embedding_norm": false, "final_norm": true, "position_embedding_type": "none")",
           R"("attention_scale": 0.7, "position_embedding_type": "none")",
           R"("normalizer": "ssmax_learned", "mask": "causal", "num_key_value_heads": 1)",
           R"x("normalizer": "ssmax_learned(bias=0.5)", "position": "urpe")x",
           R"("normalizer": "ssmax_learned", "layer_kind": "gated_attention",
              "attention_key_size": 6)",
           R"("input_residual": false)",
           R"("input_residual": false, "norm_placement": "pre", "mask": "causal")",
           R"("input_residual": false, "norm_placement": "sandwich", "gated": true)",
           R"("input_residual": false, "norm_placement": "normformer", "mixer": "gmlp")",
           R"("input_residual": false, "layer_kind": "gated_attention", "attention_key_size": 6)",
           R"("input_residual": false, "layer_kind": "gated_attention", "norm_placement": "pre",
              "attention_key_size": 6)",
       }) {
    CAPTURE(members);
    check_variant(test::tiny_design(members));
  }
}

TEST_CASE("windows and angles by layer are saved as they are") {
  for (const char* members : {
           R"("window": "2, none", "position_embedding_type": "rotary", "rope_theta": "100, none")",
           R"("window": 3, "position_embedding_type": "rotary", "rope_theta": "5e3, 10000",
              "rotary_interleaved": false)",
           R"("position_embedding_type": "rotary", "partial_rotary_factor": 0.5)",
           R"("position_embedding_type": "rotary", "rope_theta": 700)",
       }) {
    CAPTURE(members);
    const Design design = test::tiny_design(members);
    const TempFolder folder = TempFolder::in_memory();
    save_model(folder / "saved", design, test::random_weights<float>(design, 5));
    CHECK(same_design(load_model<float>(folder / "saved").design, design));
    CHECK(saved_design(design).family == "masque");
  }
  const Design design = test::tiny_design(
      R"("window": "2, none", "position_embedding_type": "rotary", "rope_theta": "100, none")");
  CHECK(design.layers[0].window == 2);
  CHECK_FALSE(design.layers[1].window);
  CHECK(design.layers[0].rotary.frequencies.size() == 4);
  CHECK(design.layers[1].rotary.frequencies.empty());
  const auto problem = [](const std::string& members) {
    return masque::test::message_of<InputError>([&] { test::tiny_design(members); });
  };
  for (const char* members : {
           R"("window": "2, none, 3")",
           R"("window": "2, x")",
           R"("position_embedding_type": "rotary", "rope_theta": "0, 1")",
           R"("position_embedding_type": "rotary", "partial_rotary_factor": 1.5)",
           R"("residual_multiplier": 0.5)",
           R"("norm_weights": false, "norm_weight_offset": 1)",
           R"("query_key_norm": "head", "mixer": "fnet")",
           R"("clip_qkv": 1, "layer_kind": "gated_attention")",
           R"("clip_qkv": 1, "clip_after_norms": true)",
           R"("query_key_norm": "all")",
       }) {
    CAPTURE(members);
    CHECK(masque::test::contains(problem(members), "expected"));
  }
}

TEST_CASE("normalizers and positions by layer") {
  for (const char* members : {
           R"("normalizer": "softmax, log_n")",
           R"x("normalizer": "softmax, ssmax_learned(s=0.6)")x",
           R"("normalizer": "ssmax_learned, softmax", "position": "rope", "streams": "fixed_keys")",
           R"x("normalizer": "l2, log_n(base=4, clip=2)", "mask": "causal")x",
           R"("position": "rope, none")",
           R"("position": "none, rope", "normalizer": "softmax, log_n", "mask": "causal")",
           R"x("position": "alibi, none", "num_key_value_heads": 1)x",
           R"x("position": "t5(buckets=4), none")x",
           R"("position": "none, shaw", "talking_heads": "both")",
           R"("position": "deberta, none")",
           R"("position": "urpe, none", "previous_scores": "one_layer")",
           R"("position": "none, t5", "position_shared": true)",
           R"("position": "rope, none", "streams": "fixed_keys")",
           R"("position": "none, rope", "normalizer": "squared_relu, softmax",
              "layer_kind": "gated_attention", "attention_key_size": 6)",
       }) {
    CAPTURE(members);
    const Design design = test::tiny_design(members);
    check_variant(design);
    const ModelWeights<double> weights = test::random_weights<double>(design, 1);
    const std::vector<bool> has_position = layers_with_position(design);
    if (shares_position(design)) continue;
    for (std::size_t l = 0; l < has_position.size(); ++l) {
      const std::size_t expected = has_position[l] ? position_parameters(design).size() : 0;
      CHECK(weights.layers[l].position.size() == expected);
    }
  }
  CHECK(LayerList("rope, none").is_list());
  CHECK(LayerList(" (3*rope , none) ").is_list());
  CHECK(LayerList("4*rope").is_list());
  CHECK(LayerList("1*rope").is_list());
  CHECK_FALSE(LayerList("rope_yarn(factor=8, length=512)").is_list());
  CHECK_FALSE(LayerList("(rope)").is_list());
  CHECK(LayerList("(2*a(b, c), d)").of_layers(3) ==
        std::vector<std::string>{"a(b, c)", "a(b, c)", "d"});
  CHECK(LayerList("a").of_layers(2) == std::vector<std::string>{"a", "a"});
  CHECK(LayerList::of({"a", "a", "b"}).text() == "2*a, b");
  CHECK(LayerList::of({"a", "a"}).text() == "a");
  for (const char* text : {"a, b", "4*a", "9223372036854775807*a, 2*b", "0*a, 3*b", "-1*a, 4*b", "",
                           ",", "2*", "()", "(,)", "1*a"})
    CHECK_THROWS_AS(LayerList(text).of_layers(3), UsageError);
}

TEST_CASE("masque's own positions are those of the registry") {
  const auto* half =
      R"("position_embedding_type": "rotary", "rotary_interleaved": false, "rope_theta": 500)";
  for (const auto& pair :
       {std::pair{R"("position_embedding_type": "rotary")", "rope"},
        std::pair{half, "rope(layout=half, base=500)"},
        std::pair{R"("position_embedding_type": "alibi")", "alibi"},
        std::pair{R"("position_embedding_type": "none")", "none"},
        std::pair{R"("position_embedding_type": "sinusoidal", "sinusoidal_interleaved": true)",
                  "sinusoidal"}}) {
    const auto& own = pair.first;
    const auto& scheme = pair.second;
    CAPTURE(scheme);
    const Design design = test::tiny_design(own);
    const Design other = test::tiny_design(position_member(scheme));
    TempFolder folder = TempFolder::in_memory();
    save_model(folder / "own", design, test::random_weights<float>(design, 5));
    save_model(folder / "other", other, test::random_weights<float>(other, 5));
    const auto a = run(*open_model(folder / "own", kExact), {kIds})->rows[0];
    const auto b = run(*open_model(folder / "other", kExact), {kIds})->rows[0];
    for (std::size_t i = 0; i < a.size(); ++i) {
      // The same terms in another order of additions.
      for (std::size_t c = 0; c < a[i].size(); ++c)
        CHECK(a[i][c] == doctest::Approx(b[i][c]).epsilon(1e-13));
    }
  }
}

TEST_CASE("one table says which schemes masque has terms of its own for") {
  const auto taken = [](const std::string& scheme) {
    Design design;
    design.num_attention_heads = 2;
    design.hidden_size = design.embedding_size = 8;
    design.head_size = 4;
    design.max_position_embeddings = 8;
    design.position = PositionType::kNone;
    design.variants.position = scheme;
    take_own_position(design);
    return design;
  };
  for (const OwnPosition& own : own_positions()) {
    CHECK(&own_position(own.type) == &own);
    if (own.scheme.empty()) continue;
    CAPTURE(own.scheme);
    CHECK(own_position(own.scheme) == &own);
    CHECK(nn::parse_position(own.scheme)->facts().input == own.input);
    for (const char* parentheses : {"", "()", "( )"}) {
      const Design design = taken(std::string(own.scheme) + parentheses);
      CHECK(design.position == own.type);
      CHECK(design.variants.position.empty());
      CHECK(adds_position(design) == own.input);
    }
  }
  for (const char* other : {"learned(alpha=0.4)", "alibi", "rope_yarn", "rope_ntk(factor=8)"}) {
    CHECK(taken(other).variants.position.text() == other);
    CHECK(taken(other).position == PositionType::kNone);
  }
  CHECK(taken("rope(base=500)").position == PositionType::kRotary);
  CHECK(own_position("alibi") == nullptr);
  CHECK(position_text(" alibi ( ) ") == "alibi");
  CHECK(position_text("t5(buckets=8)") == "t5(buckets=8)");
}

TEST_CASE("a query stream with every relative scheme") {
  for (const std::string& name : nn::position_names()) {
    const auto scheme = nn::parse_position(name);
    if (scheme->facts().input || name == "xpos") continue;
    CAPTURE(name);
    const Design design = test::tiny_design("\"streams\": \"two\", \"position\": \"" + name +
                                            "\", \"previous_scores\": \"accumulated\"");
    TempFolder folder = TempFolder::in_memory();
    save_model(folder / "saved", design, test::random_weights<float>(design, 5));
    const auto model = open_model(folder / "saved");
    // The stream reads all tokens but its own, and so does the content: nothing leaks in one layer,
    // and by two it depends on every other token.
    const auto logits = [&](const std::vector<TokenId>& ids) {
      Batch batch;
      const auto n = std::ssize(ids);
      const mask::Mask others = mask::parse_mask("tta").bind({n, n});
      const mask::Mask causal = mask::parse_mask("causal").bind({n, n});
      SequenceParts parts;
      parts.mask = causal;
      parts.query_mask = causal & others;
      batch.add(ids, parts);
      Request request;
      request.logits = true;
      request.all_rows = true;
      Seen seen;
      model->run(batch, request, &seen);
      return seen.rows[0];
    };
    const auto before = logits(kIds);
    std::vector<TokenId> changed = kIds;
    changed[4] = 17;
    const auto after = logits(changed);
    for (std::size_t i = 0; i < kIds.size(); ++i) CHECK((before[i] == after[i]) == (i <= 4));
  }
}

TEST_CASE("options that a design cannot have are refused by name") {
  for (const auto& pair : {
           std::pair{R"("mixer": "gmlp", "talking_heads": "both")", "mixer"},
           std::pair{R"("mixer": "gmlp", "position": "rope")", "mixer"},
           std::pair{R"("mixer": "gmlp", "streams": "fixed_keys")", "streams"},
           std::pair{R"("streams": "two")", "streams"},
           std::pair{R"("norm_placement": "pre", "residual_scale": 2)", "residual_scale"},
           std::pair{R"("norm_placement": "admin", "residual_scale": 2)", "residual_scale"},
           std::pair{R"("norm_placement": "admin", "layer_kind": "gated_attention")",
                     "norm_placement"},
           std::pair{R"("position": "rerope", "attention_scale": 1)", "attention_scale"},
           std::pair{R"("position": "rope", "position_embedding_type": "none")",
                     "position_embedding_type"},
           std::pair{R"("layer_kind": "gated_attention", "talking_heads": "both")",
                     "talking_heads"},
           std::pair{R"("layer_kind": "gated_attention", "mixer": "gmlp")", "mixer"},
           std::pair{R"("mask": "most")", "mask"},
           std::pair{R"("position": "rop")", "position"},
           std::pair{R"x("position": "rope(bas=3)")x", "position"},
           std::pair{R"("normalizer": "soft")", "normalizer"},
           std::pair{R"("normalizer": "softmax, soft")", "normalizer"},
           std::pair{R"("normalizer": "ssmax_learned", "position": "alibi")", "multiplies queries"},
           std::pair{R"("normalizer": "ssmax_learned", "talking_heads": "both")", "talking_heads"},
           std::pair{R"("normalizer": "ssmax_learned", "previous_scores": "one_layer")",
                     "previous_scores"},
           std::pair{R"x("normalizer": "ssmax_learned, ssmax_learned(s=1)")x", "the same in all"},
           std::pair{R"("normalizer": "softmax, l2, l2")", "list for more than 2 layers"},
           std::pair{R"("position": "rope, alibi")", "expected one scheme and none"},
           std::pair{R"("position": "learned, none")", "acts on the input"},
           std::pair{R"("position": "rerope, none")", "replaces the whole score"},
           std::pair{R"("position": "rope, none", "detector": {})", "lists"},
           std::pair{R"("input_residual": false, "norm_placement": "rezero")", "input_residual"},
           std::pair{R"("input_residual": false, "norm_placement": "admin")", "input_residual"},
           std::pair{R"("input_residual": false, "norm_placement": "parallel")", "input_residual"},
           std::pair{R"("position": "rope,")", "has an empty item"},
           std::pair{R"("position": "rope, none", "attention_scale": 0)", "differently"},
           std::pair{R"("input_residual": false, "streams": "fixed_keys")", "input_residual"},
           std::pair{R"("mixer": "gml")", "mixer"},
           std::pair{R"("mixer": "gmlp", "largest_keys": 2)", "mixer"},
           std::pair{R"("softmax_heads": 3)", "softmax_heads"},
           std::pair{R"("softmax_heads": 3, "talking_heads": "before")", "softmax_heads"},
           std::pair{R"("value_heads": 3)", "value_heads"},
           std::pair{R"("value_heads": 3, "talking_heads": "before")", "value_heads"},
           std::pair{R"("value_heads": 3, "talking_heads": "both", "num_key_value_heads": 1)",
                     "value_heads"},
           std::pair{R"("value_heads": 65537, "talking_heads": "both")", "value_heads"},
           std::pair{R"("mixer": "gmlp", "mixer_kernel_size": 0)", "mixer_kernel_size"},
           std::pair{R"("num_key_value_heads": 3)", "num_key_value_heads"},
           std::pair{R"("latent": {}, "late_positions": 1)", "late_positions"},
       }) {
    const auto& members = pair.first;
    const auto& name = pair.second;
    CAPTURE(members);
    CHECK_THROWS_WITH_AS(test::tiny_design(members), doctest::Contains(name), InputError);
  }
}

TEST_CASE("soft masking is what it is by definition") {
  const std::string detector =
      R"("detector": {"hidden_size": 6, "num_attention_heads": 2, "intermediate_size": 10})";
  check_variant(test::tiny_design(detector));
  check_variant(test::tiny_design(R"("detector": {}, "type_vocab_size": 2)"));
  check_variant(
      test::tiny_design(R"("num_hidden_layers": 2, "detector": {"num_hidden_layers": 2})"));
  check_variant(test::tiny_design(detector + R"(, "norm_placement": "pre")"));
  check_variant(test::tiny_design(detector + R"(, "embedding_size": 5)"));
  check_variant(test::tiny_design(detector + R"(, "position": "alibi")"));
  check_variant(test::tiny_design(R"("detector": {"num_attention_heads": 1},
                                     "layer_kind": "gated_attention")"));
  for (const auto& [member, name] :
       {std::pair{R"("streams": "fixed_keys")", "streams"},
        std::pair{R"("mask": "causal")", "mask"},
        std::pair{R"("position": "convolutional")", "acts on the input"}}) {
    CAPTURE(member);
    CHECK_THROWS_WITH_AS(test::tiny_design(detector + ", " + member), doctest::Contains(name),
                         InputError);
  }
  CHECK_THROWS_WITH_AS(test::tiny_design(R"("detector": {"num_attention_heads": 3})"),
                       doctest::Contains("divides the hidden size"), InputError);
  CHECK_THROWS_WITH_AS(test::tiny_design(R"("detector": 3)"), doctest::Contains("an object"),
                       InputError);
}

TEST_CASE("a detector has no late positions, and rotary ones of the model's base") {
  const std::string members = R"("num_hidden_layers": 2,
      "detector": {"hidden_size": 12, "num_attention_heads": 1, "intermediate_size": 8}, )";
  const Design late = test::tiny_design(members + R"("late_positions": 2)");
  CHECK(std::ranges::none_of(detector_rows(late), [](const TensorRow& row) {
    return row.roles.front() == Role::kLatePositions;
  }));
  Design rotary =
      test::tiny_design(members + R"("position_embedding_type": "rotary", "rope_theta": 500000)");
  const std::vector<double> wanted = kernel::rotary_frequencies(500000, 12);
  CHECK(detector_design(rotary).layers[0].rotary.frequencies == wanted);
  // As checkpoints of transformers have them.
  for (LayerDesign& layer : rotary.layers) {
    for (double& f : layer.rotary.frequencies) f = static_cast<double>(static_cast<float>(f));
  }
  CHECK(detector_design(rotary).layers[0].rotary.frequencies == wanted);
  for (LayerDesign& layer : rotary.layers) layer.rotary.frequencies.back() /= 2;
  CHECK_THROWS_WITH_AS(detector_design(rotary), doctest::Contains("scaled rotary"), UsageError);
}

TEST_CASE("the head's activation is by default that of the layers") {
  for (const char* members :
       {"", R"("layer_kind": "gated_attention")", R"("hidden_act": "relu")"}) {
    CAPTURE(members);
    const Design design = test::tiny_design(members);
    REQUIRE(design.head.transform);
    CHECK(design.head.activation == design.activation);
  }
}

/// Takes what a detector says.
struct Detections : Observer {
  void detections(Index sequence, MatrixView<const float> rows) override {
    seen.at(static_cast<std::size_t>(sequence)).assign(rows.data, rows.data + rows.rows);
  }
  std::vector<std::vector<float>> seen;
};

TEST_CASE("a detector tells each token's probability, to those who ask for it") {
  TempFolder folder = TempFolder::in_memory();
  const Design design = test::tiny_design(R"("detector": {})");
  save_model(folder / "soft", design, test::random_weights<float>(design, 5));
  const auto model = open_model(folder / "soft");
  Batch batch;
  const std::vector<TokenId> other{1, 38, 7};
  batch.add(other);
  batch.add(kIds);
  Request request;
  request.detections = true;
  Detections both, one;
  both.seen.resize(2);
  model->run(batch, request, &both);
  CHECK(both.seen[0].size() == 3);
  REQUIRE(both.seen[1].size() == kIds.size());
  for (const float p : both.seen[1]) CHECK((p > 0 && p < 1));
  Batch alone;
  alone.add(kIds);
  one.seen.resize(1);
  model->run(alone, request, &one);
  CHECK(one.seen[0] == both.seen[1]);
  CHECK_THROWS_WITH_AS(open_model(folder / "soft", {.keys = mask::KeySource::kInput}),
                       doctest::Contains("detector reads all tokens"), UsageError);
  const Design plain = test::tiny_design("");
  save_model(folder / "plain", plain, test::random_weights<float>(plain, 5));
  CHECK_THROWS_WITH_AS(open_model(folder / "plain")->run(batch, request, &both),
                       doctest::Contains("no detector"), InputError);
  CHECK(model->make_cache(1, true) == nullptr);
}

TEST_CASE("requests that a design cannot answer are refused") {
  TempFolder folder = TempFolder::in_memory();
  const Design mixed = test::tiny_design(R"("mixer": "resmlp")");
  save_model(folder / "mixed", mixed, test::random_weights<float>(mixed, 5));
  const Design talks = test::tiny_design(R"("previous_scores": "one_layer")");
  save_model(folder / "talks", talks, test::random_weights<float>(talks, 5));
  Batch batch;
  batch.add(kIds);
  Request maps;
  maps.attentions = true;
  CHECK_THROWS_AS(open_model(folder / "mixed")->run(batch, maps), UsageError);
  CHECK_NOTHROW(open_model(folder / "talks")->run(batch, maps));
  maps.attention_rows = true;
  CHECK_NOTHROW(open_model(folder / "talks")->run(batch, maps));
  for (const auto& [members, part] :
       {std::pair{R"("talking_heads": "after")", "talking heads after the normalizer"},
        std::pair{R"("talking_heads": "both")", "talking heads after the normalizer"},
        std::pair{R"("position": "urpe")", "position urpe"}}) {
    const Design factors = test::tiny_design(members);
    TempFolder own = TempFolder::in_memory();
    save_model(own / "factors", factors, test::random_weights<float>(factors, 5));
    CHECK_THROWS_WITH_AS(open_model(own / "factors")->run(batch, maps), doctest::Contains(part),
                         UsageError);
  }
  Request level;
  level.attention = {AttentionOverride::kMean, AttentionOverride::kIntact};
  CHECK_THROWS_AS(open_model(folder / "mixed")->run(batch, level), UsageError);
  CHECK_THROWS_AS(open_model(folder / "talks")->run(batch, level), UsageError);
  ModelOptions fixed;
  fixed.keys = mask::KeySource::kInput;
  CHECK_NOTHROW(open_model(folder / "mixed", fixed));
  const Design gated = test::tiny_design(R"("mixer": "gmlp")");
  save_model(folder / "gated", gated, test::random_weights<float>(gated, 5));
  CHECK_THROWS_AS(open_model(folder / "gated", fixed), UsageError);
}

}  // namespace
}  // namespace masque::model
