// DeepNorm: its constants, how weights start, and what one update changes in deep models
// (acceptance test 22). Wang 2022, arXiv:2203.00555. Models with an encoder and a decoder cannot be
// trained here: of the paper's table the rows for one stack hold.
//
// What an update changes, of a model with N layers: each of its 2N sublayers hands on β/α of what
// its weights learn, and has gradients of that size. Hence
//
//   SGD    N (β/α)²   the same at any depth with DeepNorm, α = (2N)^1/4, β = (8N)^-1/4
//   Adam   N β/α      steps do not depend on the size of gradients: √N with DeepNorm, the same at
//                     any depth for α = √(2N), β = 1/α (https://kexue.fm/archives/8978)
//   LAMB   N (β/α) β  steps are as large as the weights, too: the same at any depth for α = 1,
//                     β = 1/√(2N)
//
// and N with post-norm. That is said of the weights of sublayers: the goal of the paper is a change
// F(θ − η ∂L/∂θ) − F(θ) that does not grow, its theorem sums over their parameters, and β is of
// them alone. Nothing shrinks what gains and biases of norms change: it grows with N whatever α is,
// so that a whole model changes more when it is deep with AdamW, by DeepNorm's constants too.
#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "model/checkpoint/save.hpp"
#include "train/network/recipe.hpp"
#include "train/run/trainer.hpp"
#include "train_case.hpp"

namespace masque::test {

using namespace masque::train;
using model::Role;

namespace {

constexpr TokenId kVocabulary = 40;
constexpr std::size_t kLength = 8;
constexpr Index kSequences = 8;

ObjectiveOptions requested(std::uint64_t seed) {
  ObjectiveOptions options = objective_options(seed);
  options.tokens.size = kVocabulary;
  options.tokens.begins_word.assign(kVocabulary, 1);
  options.mlm.selection.rate = 0.5;
  return options;
}

DesignRecipe recipe_of(Index layers, const std::string& placement, Index width = 16) {
  DesignRecipe recipe;
  recipe.vocab_size = kVocabulary;
  recipe.num_hidden_layers = layers;
  recipe.hidden_size = width;
  recipe.num_attention_heads = 2;
  recipe.max_position_embeddings = kLength;
  recipe.norm_placement = placement;
  return recipe;
}

/// A masked language model as its recipe starts it.
struct Started {
  Started(const DesignRecipe& recipe, double residual_scale, std::uint64_t seed)
      : objective(make_objective("mlm", requested(seed))), design(design_of(recipe)) {
    design.variants.residual_scale = residual_scale;
    objective->adapt(design);
    const model::ModelPlan plan = model::saved_design(design).plan;
    map = add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    initialize_parameters(design, map, {.seed = seed, .residual_gain = residual_gain(recipe)},
                          parameters);
  }

  std::unique_ptr<const Objective> objective;
  model::Design design;
  Parameters<float> parameters;
  ParameterMap map;
};

double scale_of(const DesignRecipe& recipe) { return design_of(recipe).variants.residual_scale; }

std::vector<TokenId> some_ids(std::uint64_t number) {
  std::vector<TokenId> ids = Sequence(number, kLength).ids;
  for (TokenId& id : ids) id = id < 5 ? id : 5 + id % (kVocabulary - 5);
  return ids;
}

/// The last states of all tokens of some sequences.
Matrix<float> states_of(Network<float>& network, std::uint64_t first) {
  std::vector<Example> probe(kSequences);
  for (std::size_t k = 0; k < probe.size(); ++k) {
    probe[k].ids = probe[k].targets = some_ids(first + k);
    for (Index i = 0; i < probe[k].size(); ++i) probe[k].rows.push_back(i);
  }
  Matrix<float> last;
  network.prepare();
  network.evaluate(probe, {.last = &last});
  return last;
}

/// A loss whose updates change some parameters, all or the weights of sublayers.
class Chosen final : public StepLoss {
 public:
  Chosen(StepLoss& loss, const ParameterMap& map, bool all) : loss_(loss) {
    map.for_each([&](Role role, bool bias, Index, Index, Index at) {
      const bool weight = role == Role::kQuery || role == Role::kKey || role == Role::kValue ||
                          role == Role::kOutput || role == Role::kUp || role == Role::kDown;
      if (all || (weight && !bias)) parameters.insert(at);
    });
  }
  void check(const Corpus& corpus) const override { loss_.check(corpus); }
  void prepare() override { loss_.prepare(); }
  StepLosses add_gradients(std::span<const StepItem> items,
                           const DropoutOptions& dropout) override {
    return loss_.add_gradients(items, dropout);
  }
  StepLosses evaluate(std::span<const StepItem> items) override { return loss_.evaluate(items); }
  bool updates(Index parameter, std::int64_t /*step*/) const override {
    return parameters.contains(parameter);
  }

  std::set<Index> parameters;

 private:
  StepLoss& loss_;
};

enum class Rule { kSgd, kAdam, kAdamOfAll, kLamb };

void descend(Chosen& loss, const Corpus& corpus, double rate, Parameters<float>& parameters) {
  std::vector<StepItem> items;
  for (Index k = 0; k < corpus.size(); ++k) items.push_back({corpus.item(k), 0});
  parameters.clear_gradients();
  loss.prepare();
  loss.add_gradients(items, DropoutOptions());
  for (const Index at : loss.parameters) {
    for (Index k = 0; k < parameters[at].size(); ++k)
      parameters.value(at).data[k] -= static_cast<float>(rate) * parameters.gradient(at).data[k];
  }
}

/// ‖F(θ1) − F(θ0)‖ / √(n d) by one update, without warm-up.
double change(const DesignRecipe& recipe, double residual_scale, Rule rule, std::uint64_t seed) {
  Started model(recipe, residual_scale, seed);
  Network<float> network(model.design, model.map, model.parameters, kernel::Precision::kF32);
  ObjectiveLoss whole(network, *model.objective);
  Chosen loss(whole, model.map, rule == Rule::kAdamOfAll);
  Corpus corpus;
  for (std::uint64_t k = 0; k < kSequences; ++k) corpus.add(some_ids(seed * 100 + k));
  const Matrix<float> before = states_of(network, seed * 100);
  if (rule == Rule::kSgd) {
    descend(loss, corpus, 0.1, model.parameters);
  } else {
    TrainerOptions options;
    options.batch_size = kSequences;
    options.schedule.learning_rate = rule == Rule::kLamb ? 1e-3 : 1e-4;
    if (rule == Rule::kLamb) options.optimizer = Optimizer::kLamb;
    options.schedule.decay = Decay::kConstant;
    options.weight_decay = 0;
    Trainer(loss, model.parameters, corpus, options).step();
  }
  const Matrix<float> after = states_of(network, seed * 100);
  double sum = 0;
  for (std::size_t i = 0; i < before.span().size(); ++i) {
    const double moved = static_cast<double>(after.span()[i]) - before.span()[i];
    sum += moved * moved;
  }
  return std::sqrt(sum / static_cast<double>(before.span().size()));
}

/// How many times as much of 100 layers as of 6.
double deep_by_shallow(const char* placement, bool scaled, Rule rule, std::uint64_t seed) {
  const auto of = [&](Index layers) {
    const DesignRecipe recipe = recipe_of(layers, placement);
    return change(recipe, scaled ? scale_of(recipe) : 1, rule, seed);
  };
  const double shallow = of(6);
  CHECK(shallow > 1e-5);
  return of(100) / shallow;
}

}  // namespace

TEST_CASE("DeepNorm's constants are the published ones, for encoders and decoders") {
  struct Row {
    Index layers;
    double scale, gain;  ///< α, β
  };
  for (const Row& row : {Row{3, 1.565, 0.452}, Row{6, 1.861, 0.380}, Row{12, 2.213, 0.319},
                         Row{24, 2.632, 0.269}, Row{100, 3.761, 0.188}, Row{1000, 6.687, 0.106}}) {
    CAPTURE(row.layers);
    const DesignRecipe recipe = recipe_of(row.layers, "deepnorm");
    for (const char* objective : {"mlm", "clm"}) {
      model::Design design = design_of(recipe);
      make_objective(objective, requested(1))->adapt(design);
      CHECK(std::abs(design.variants.residual_scale - row.scale) < 0.0005);
    }
    CHECK(std::abs(residual_gain(recipe) - row.gain) < 0.0005);
    // For Adam: α = √(2N), λ its inverse. https://kexue.fm/archives/8978
    const DesignRecipe su = recipe_of(row.layers, "deepnorm_su");
    CHECK(scale_of(su) * scale_of(su) ==
          doctest::Approx(2.0 * static_cast<double>(row.layers)).epsilon(1e-14));
    CHECK(scale_of(su) * residual_gain(su) == doctest::Approx(1).epsilon(1e-14));
    const DesignRecipe sgd = recipe_of(row.layers, "deepnorm_su_sgd");
    CHECK(scale_of(sgd) == scale_of(recipe));
    CHECK(scale_of(sgd) * residual_gain(sgd) == doctest::Approx(1).epsilon(1e-14));
    const DesignRecipe lamb = recipe_of(row.layers, "deepnorm_su_lamb");
    CHECK(scale_of(lamb) == 1);
    CHECK(residual_gain(lamb) == residual_gain(su));
  }
  for (const char* placement : {"post", "pre", "parallel"}) {
    CHECK(scale_of(recipe_of(12, placement)) == 1);
    CHECK(residual_gain(recipe_of(12, placement)) == 0);
  }
}

TEST_CASE("DeepNorm's weights start as Xavier's, with the gain in the residual branches alone") {
  for (const char* placement : {"deepnorm", "deepnorm_su", "deepnorm_su_sgd", "deepnorm_su_lamb"}) {
    CAPTURE(placement);
    const DesignRecipe recipe = recipe_of(2, placement, 64);
    Started model(recipe, scale_of(recipe), 3);
    int checked = 0;
    model.map.for_each([&](Role role, bool bias, Index, Index, Index at) {
      const bool plain = role == Role::kQuery || role == Role::kKey;
      const bool residual =
          role == Role::kValue || role == Role::kOutput || role == Role::kUp || role == Role::kDown;
      if (bias || !(plain || residual)) return;
      const Parameter& p = model.parameters[at];
      CAPTURE(p.name);
      double squares = 0;
      for (Index k = 0; k < p.size(); ++k) {
        const double value = model.parameters.value(at).data[k];
        squares += value * value;
      }
      const double deviation = std::sqrt(squares / static_cast<double>(p.size()));
      const double xavier = std::sqrt(2.0 / static_cast<double>(p.rows + p.columns));
      const double gain = plain ? 1 : residual_gain(recipe);
      // 3 sigma of the deviation of so many normal numbers.
      CHECK(std::abs(deviation / (gain * xavier) - 1) <
            3 / std::sqrt(2 * static_cast<double>(p.size())));
      ++checked;
    });
    CHECK(checked == 12);
  }
}

TEST_CASE("one update changes a deep model as much as a shallow one with DeepNorm, else more") {
  struct Row {
    Rule rule;
    const char* placement;
    bool scaled;   ///< by α; not: the controls, post-norm that starts with the same numbers
    double power;  ///< of N
  };
  for (const Row& row :
       {Row{Rule::kSgd, "deepnorm", true, 0}, Row{Rule::kSgd, "deepnorm", false, 0.5},
        Row{Rule::kSgd, "deepnorm_su", true, -1}, Row{Rule::kSgd, "post", true, 1},
        Row{Rule::kSgd, "deepnorm_su_sgd", true, 0}, Row{Rule::kLamb, "deepnorm_su_lamb", true, 0},
        Row{Rule::kLamb, "post", true, 1}, Row{Rule::kAdam, "deepnorm_su", true, 0},
        Row{Rule::kAdam, "deepnorm_su", false, 0.5}, Row{Rule::kAdam, "deepnorm", true, 0.5},
        Row{Rule::kAdam, "post", true, 1}}) {
    CAPTURE(row.placement);
    CAPTURE(row.scaled);
    CAPTURE(row.power);
    const double expected = std::pow(100.0 / 6, row.power);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(seed);
      const double ratio = deep_by_shallow(row.placement, row.scaled, row.rule, seed);
      CHECK(ratio > expected / 1.5);
      CHECK(ratio < expected * 1.5);
    }
  }
}

// 100 layers by 6: 5 times as much, 8 of post-norm.
TEST_CASE("with norms and biases, AdamW changes a deep model more, with DeepNorm less so") {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    const double deepnorm = deep_by_shallow("deepnorm", true, Rule::kAdamOfAll, seed);
    const double su = deep_by_shallow("deepnorm_su", true, Rule::kAdamOfAll, seed);
    const double post = deep_by_shallow("post", true, Rule::kAdamOfAll, seed);
    CHECK(deepnorm > 2);
    CHECK(su > 2);
    CHECK(post > 1.25 * std::max(deepnorm, su));
  }
}

}  // namespace masque::test
