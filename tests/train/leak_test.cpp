// No design that training takes lets a row read what it predicts: the networks themselves are
// requested, for every objective with every scheme, mixer and structure.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "model/checkpoint/save.hpp"
#include "model/variants.hpp"
#include "nn/mixer.hpp"
#include "nn/position_scheme.hpp"
#include "support/message.hpp"
#include "train/network/recipe.hpp"
#include "train/run/leak_probe.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

using Variation = std::pair<std::string, DesignRecipe>;

DesignRecipe small_recipe() {
  DesignRecipe recipe;
  recipe.vocab_size = 1000;
  recipe.num_hidden_layers = 2;
  recipe.hidden_size = 16;
  recipe.num_attention_heads = 2;
  recipe.attention_key_size = 8;
  recipe.max_position_embeddings = 12;
  return recipe;
}

std::vector<Variation> variations() {
  std::vector<Variation> all;
  const auto add = [&](const std::string& name, auto change) {
    DesignRecipe recipe = small_recipe();
    change(recipe);
    all.emplace_back(name, recipe);
  };
  std::vector<std::string> positions = nn::position_names();
  for (const char* more :
       {"sinusoidal", "none", "convolutional(width=2, causal=true)", "convolutional(width=5)",
        "randomized(scheme=convolutional)", "randomized(scheme=rope)"})
    positions.emplace_back(more);
  for (const std::string& name : positions)
    add("position " + name, [&](DesignRecipe& r) { r.position = name; });
  for (const nn::Mixer* mixer : nn::mixers()) {
    add("mixer " + std::string(mixer->info().name), [&](DesignRecipe& r) {
      r.mixer = mixer->info().name;
      r.position = "none";
    });
  }
  for (const char* kind : {"transformer", "gated_attention"}) {
    for (const char* position : {"learned", "rope"}) {
      add(std::string(kind) + " " + position, [&](DesignRecipe& r) {
        r.layer_kind = kind;
        r.position = position;
      });
    }
  }
  for (const char* where : {"pre", "parallel", "deepnorm", "deepnorm_su"})
    add(where, [&](DesignRecipe& r) { r.norm_placement = where; });
  for (const char* where : {"before", "after", "both"})
    add(std::string("talking ") + where, [&](DesignRecipe& r) { r.talking_heads = where; });
  for (const char* kind : {"one_layer", "accumulated"}) {
    add(std::string("scores of ") + kind, [&](DesignRecipe& r) {
      r.previous_scores = kind;
      r.position = "rope";
    });
  }
  return all;
}

Corpus small_corpus() {
  Corpus corpus;
  for (std::uint64_t i = 0; i < 4; ++i) corpus.add(test::Sequence(i, 8).ids);
  return corpus;
}

/// What the network of a design shows.
struct Probed {
  bool made = false;  ///< false: the design is refused for another reason
  std::optional<FoundLeak> leak;
};

/// `allowed`: the objective allows leaks.
Probed probe(const Objective& objective, const model::Design& design, const Corpus& corpus,
             bool allowed) {
  Probed probed;
  try {
    const model::ModelPlan plan = model::plan_of(design);
    Parameters<float> parameters;
    const ParameterMap map =
        add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
    initialize_parameters(design, map, {.seed = 5, .initializer_range = 0.2}, parameters);
    Network<float> network(design, map, parameters, kernel::Precision::kF32);
    probed.made = true;
    probed.leak = probe_leak(network, objective, corpus);
  } catch (const Error& error) {
    // A mixer refuses at work a mask that it cannot obey, if the design was let through.
    const bool obeys = test::contains(error.what(), "cannot obey this mask");
    CHECK((!probed.made || (obeys && model::mask_support(design).masks != nn::MaskSupport::kAny)));
    CHECK((!obeys || allowed));
    probed.made = false;
  }
  return probed;
}

std::unique_ptr<const Objective> objective_of(std::string_view name, bool allow_leak) {
  ObjectiveOptions options = test::objective_options();
  options.allow_leak = allow_leak;
  options.prefix.mix = {0, 1, 1, 1};  // what is left of unilm without masked tokens
  return test::make_objective(name, options);
}

TEST_CASE("what training takes does not leak and what it refuses as a leak does") {
  const Corpus corpus = small_corpus();
  std::size_t clean = 0;
  std::set<std::string> refused;
  std::set<std::string> leaking;
  for (const ObjectiveKind* kind : objectives()) {
    const auto objective = objective_of(kind->name, false);
    const auto allowing = objective_of(kind->name, true);
    for (const auto& [name, recipe] : variations()) {
      CAPTURE(kind->name);
      CAPTURE(name);
      const std::string both = std::string(kind->name) + " " + name;
      model::Design design = design_of(recipe);
      if (const auto problem = usage_error_of([&] { objective->adapt(design); })) {
        if (!test::contains(*problem, "obeys the masks")) continue;
        refused.insert(both);
        model::Design open = design_of(recipe);
        allowing->adapt(open);
        const Probed probed = probe(*allowing, open, corpus, true);
        if (probed.leak) leaking.insert(both);
        continue;
      }
      const Probed probed = probe(*objective, design, corpus, false);
      if (!probed.made) continue;
      ++clean;
      CHECK_FALSE(probed.leak.has_value());
    }
  }
  CHECK(clean >= 200);
  for (const char* objective : {"clm", "tta", "unilm", "mae-mask"}) {
    for (const char* position :
         {"convolutional", "convolutional(width=5)", "randomized(scheme=convolutional)"}) {
      const std::string both = std::string(objective) + " position " + position;
      CAPTURE(both);
      CHECK(refused.contains(both));
      if (std::string_view(objective) != "mae-mask") CHECK(leaking.contains(both));
    }
  }
  CHECK(refused.contains("tta position xpos"));
  CHECK_FALSE(refused.contains("clm position convolutional(width=2, causal=true)"));
  CHECK_FALSE(refused.contains("mlm position convolutional"));
  CHECK(refused.contains("tta position convolutional(width=2, causal=true)"));
}

}  // namespace
}  // namespace masque::train
