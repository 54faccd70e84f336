// DeepNorm: its constants, how weights start, and what one update changes in deep models
// (acceptance test 22). Wang 2022, arXiv:2203.00555. Models with an encoder and a decoder cannot be
// trained here: of the paper's table the rows for one stack hold.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "model/save.hpp"
#include "train/recipe.hpp"
#include "train/trainer.hpp"
#include "train_case.hpp"

namespace masque::test {

using namespace masque::train;
using model::Role;

namespace {

constexpr TokenId kVocabulary = 40;
constexpr std::size_t kLength = 8;
constexpr Index kSequences = 8;

ObjectiveOptions asked(std::uint64_t seed) {
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
      : objective(make_objective("mlm", asked(seed))), design(design_of(recipe)) {
    design.variants.residual_scale = residual_scale;
    objective->adapt(design);
    const model::ModelPlan plan = model::plan_of(design);
    slots = add_model(plan, model::head_like(plan, design.head), "", Slots(), parameters);
    start_values(design, slots, {.seed = seed, .residual_gain = residual_gain(recipe)}, parameters);
  }

  std::unique_ptr<const Objective> objective;
  model::Design design;
  Parameters<float> parameters;
  Slots slots;
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

/// ‖F(θ1) − F(θ0)‖ / √(n d) by one update of AdamW, without warm-up.
double change(const DesignRecipe& recipe, double residual_scale, std::uint64_t seed) {
  Started model(recipe, residual_scale, seed);
  Network<float> network(model.design, model.slots, model.parameters, kernel::Precision::kF32);
  ObjectiveLoss loss(network, *model.objective);
  Corpus corpus;
  for (std::uint64_t k = 0; k < kSequences; ++k) corpus.add(some_ids(seed * 100 + k));
  TrainerOptions options;
  options.batch_size = kSequences;
  options.schedule.learning_rate = 1e-4;
  options.schedule.decay = Decay::kConstant;
  options.seed = seed;
  Trainer trainer(loss, model.parameters, corpus, options);
  const Matrix<float> before = states_of(network, seed * 100);
  trainer.step();
  const Matrix<float> after = states_of(network, seed * 100);
  double sum = 0;
  for (std::size_t i = 0; i < before.span().size(); ++i) {
    const double moved = static_cast<double>(after.span()[i]) - before.span()[i];
    sum += moved * moved;
  }
  return std::sqrt(sum / static_cast<double>(before.span().size()));
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
      make_objective(objective, asked(1))->adapt(design);
      CHECK(std::abs(design.variants.residual_scale - row.scale) < 0.0005);
    }
    CHECK(std::abs(residual_gain(recipe) - row.gain) < 0.0005);
    // For Adam: α = √(2N), λ its inverse. https://kexue.fm/archives/8978
    const DesignRecipe su = recipe_of(row.layers, "deepnorm_su");
    CHECK(scale_of(su) * scale_of(su) ==
          doctest::Approx(2.0 * static_cast<double>(row.layers)).epsilon(1e-14));
    CHECK(scale_of(su) * residual_gain(su) == doctest::Approx(1).epsilon(1e-14));
  }
  for (const char* placement : {"post", "pre", "parallel"}) {
    CHECK(scale_of(recipe_of(12, placement)) == 1);
    CHECK(residual_gain(recipe_of(12, placement)) == 0);
  }
}

TEST_CASE("DeepNorm's weights start as Xavier's, with the gain behind the residual alone") {
  for (const char* placement : {"deepnorm", "deepnorm_su"}) {
    CAPTURE(placement);
    const DesignRecipe recipe = recipe_of(2, placement, 64);
    Started model(recipe, scale_of(recipe), 3);
    int checked = 0;
    model.slots.for_each([&](Role role, bool bias, Index, Index, Index at) {
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
      CHECK(deviation / xavier == doctest::Approx(plain ? 1 : residual_gain(recipe)).epsilon(0.05));
      ++checked;
    });
    CHECK(checked == 12);
  }
}

TEST_CASE("one update changes a deep model as much as a shallow one with DeepNorm, else more") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    const auto ratio = [&](const char* placement, bool scaled) {
      const auto of = [&](Index layers) {
        const DesignRecipe recipe = recipe_of(layers, placement);
        return change(recipe, scaled ? scale_of(recipe) : 1, seed);
      };
      const double shallow = of(6);
      CHECK(shallow > 1e-4);
      return of(100) / shallow;
    };
    const double deepnorm = ratio("deepnorm", true);
    const double su = ratio("deepnorm_su", true);
    // The controls: post-norm that starts with the same numbers, and as ever.
    const double same_start = ratio("deepnorm", false);
    const double post = ratio("post", true);
    CHECK(deepnorm < 2);
    CHECK(su < 2);
    CHECK(same_start > 2.5);
    CHECK(post > 2);
  }
}

}  // namespace masque::test
