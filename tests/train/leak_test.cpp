// No design that training takes lets a row read what it predicts: the networks themselves are
// tested, for every objective with every combination of scheme, structure and placement of norms.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/save.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/position/position_scheme.hpp"
#include "support/message.hpp"
#include "train/loss/electra_loss.hpp"
#include "train/loss/mae_loss.hpp"
#include "train/network/recipe.hpp"
#include "train/run/mask_check.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

// Small, as there are thousands of networks. Every token is an ordinary one.
constexpr TokenId kWords = 8;
constexpr std::array<TokenId, 6> kIds{0, 3, 1, 4, 2, 6};

records::TokenTable small_tokens() {
  records::TokenTable tokens;
  tokens.size = kWords;
  tokens.mask = kWords - 1;
  tokens.begins_word.assign(kWords, 1);
  return tokens;
}

/// One combination.
struct Combination {
  DesignRecipe recipe;
  std::string name;
  bool plain = true;  ///< nothing but the scheme is unusual
};

DesignRecipe small_recipe() {
  DesignRecipe recipe;
  recipe.vocab_size = kWords;
  recipe.num_hidden_layers = 2;
  recipe.hidden_size = recipe.intermediate_size = 8;
  recipe.num_attention_heads = 2;
  recipe.attention_key_size = 4;
  recipe.max_position_embeddings = 8;
  return recipe;
}

std::vector<std::string> all_positions() {
  std::vector<std::string> positions = nn::position_names();
  for (const char* more : {"convolutional(width=2, causal=true)", "convolutional(width=5)",
                           "randomized(scheme=convolutional)", "learned(alpha=0.3)"})
    positions.emplace_back(more);
  return positions;
}

/// What mixes tokens, with all that may be changed of it.
std::vector<Combination> all_structures() {
  std::vector<Combination> all;
  for (const char* kind : {"transformer", "gated_attention"}) {
    for (const char* talking : {"none", "before", "after", "both"}) {
      for (const char* scores : {"none", "one_layer", "accumulated"}) {
        Combination& one = all.emplace_back();
        one.recipe = small_recipe();
        one.recipe.layer_kind = kind;
        one.recipe.talking_heads = talking;
        one.recipe.previous_scores = scores;
        one.name = fmt::format("{}, heads talk {}, scores {}", kind, talking, scores);
        one.plain = all.size() == 1;
      }
    }
  }
  for (const nn::Mixer* mixer : nn::mixers()) {
    Combination& one = all.emplace_back();
    one.recipe = small_recipe();
    one.recipe.mixer = mixer->info().name;
    one.name = one.recipe.mixer;
    one.plain = false;
  }
  return all;
}

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const Combination& structure : all_structures()) {
    for (const char* where : {"post", "pre", "parallel", "sandwich", "deepnorm", "deepnorm_su"}) {
      for (const std::string& position : all_positions()) {
        Combination& one = all.emplace_back(structure);
        one.recipe.norm_placement = where;
        one.recipe.position = position;
        one.plain = structure.plain && one.recipe.norm_placement == "post";
        one.name = fmt::format("{}, {}, {}", position, structure.name, where);
      }
    }
  }
  return all;
}

/// Positions are added to the input.
bool adds_positions(const Combination& c) {
  return nn::parse_position(c.recipe.position)->facts().input;
}

/// Whether there is such a design: what no layer has together is the only reason to leave one out.
bool can_be(const Combination& c) {
  if (c.recipe.layer_kind == "gated_attention")
    return c.recipe.talking_heads == "none" && c.recipe.norm_placement != "parallel" &&
           c.recipe.norm_placement != "sandwich";
  return c.recipe.mixer.empty() || adds_positions(c) || c.recipe.position == "none";
}

/// Whether it has the streams of an objective.
bool has_streams(const Combination& c, std::string_view objective) {
  // What a row's own token decides is no T-TA's.
  if (objective == "tta")
    return c.recipe.mixer.empty() || !nn::find_mixer(c.recipe.mixer)->info().reads_own;
  if (objective == "two-tower" || objective == "univae")
    return c.recipe.mixer.empty() && c.recipe.previous_scores == "none";
  if (objective != "plm" && objective != "plm-hf") return true;
  return c.recipe.mixer.empty() && !adds_positions(c);
}

/// Which masks an objective needs.
nn::MaskSupport need_of(std::string_view objective) {
  if (objective == "mlm" || objective == "mdlm") return nn::MaskSupport::kFull;
  if (objective == "clm" || objective.starts_with("plm")) return nn::MaskSupport::kCausal;
  return nn::MaskSupport::kAny;
}

Corpus small_corpus(bool records) {
  Corpus corpus;
  CorpusItem item;
  item.ids = kIds;
  std::vector<std::int32_t> labels;
  if (records) {
    // Each token from those after it, under a mask that no design has by itself.
    labels = {records::kNoLabel, kIds[0], kIds[1], kIds[2], kIds[3], kIds[4]};
    item.labels = labels;
    item.mask = "reverse";
  }
  corpus.add(item);
  if (records) corpus.set_labels(LabelKind::kTokens);
  return corpus;
}

std::unique_ptr<const Objective> objective_of(std::string_view name, bool allow_leak,
                                              const Corpus& corpus) {
  ObjectiveOptions options;
  options.seed = 1;
  options.tokens = small_tokens();
  options.allow_leak = allow_leak;
  options.prefix.mix = {0, 1, 1, 1};  // what is left of unilm without masked tokens
  options.mae.ratio = 0.4;
  options.own_masks = corpus.has_masks();
  options.records = record_needs(corpus);
  return test::make_objective(name, options);
}

/// What the network of a design shows.
std::optional<FoundLeak> probe(const Objective& objective, const model::Design& design,
                               const Corpus& corpus) {
  const model::ModelPlan plan = model::saved_design(design).plan;
  Parameters<float> parameters;
  const ParameterMap map =
      add_model(plan, model::head_like(plan, design.head), "", ParameterMap(), parameters);
  initialize_parameters(design, map, {.seed = 5, .initializer_range = 0.3}, parameters);
  Network<float> network(design, map, parameters, kernel::Precision::kF32);
  return probe_leak(network, objective, corpus);
}

/// What became of the combinations of an objective.
struct Counts {
  std::size_t clean = 0;
  std::size_t refused = 0;  ///< as leaks
  std::size_t none = 0;     ///< there is no such design
  std::set<std::string> refused_positions = {}, leaking_positions = {};  ///< of plain ones
};

/// A design that training refuses as a leak; a plain one is tested all the same.
void check_refused(std::string_view objective, const Combination& c, const Corpus& corpus,
                   Counts& counts) {
  ++counts.refused;
  const auto strict = objective_of(objective, false, corpus);
  model::Design design = design_of(c.recipe);
  CHECK(test::contains(usage_error_message([&] { strict->adapt(design); }).value_or("taken"),
                       "obeys only the masks"));
  if (!c.plain) return;
  counts.refused_positions.insert(c.recipe.position);
  const auto allowing = objective_of(objective, true, corpus);
  model::Design open = design_of(c.recipe);
  allowing->adapt(open);
  if (probe(*allowing, open, corpus)) counts.leaking_positions.insert(c.recipe.position);
}

Counts check_objective(std::string_view name, const std::vector<Combination>& combinations) {
  const Corpus corpus = small_corpus(name == "records");
  const auto objective = objective_of(name, false, corpus);
  Counts counts;
  for (const Combination& c : combinations) {
    CAPTURE(name);
    CAPTURE(c.name);
    if (!can_be(c) || !has_streams(c, name)) {
      ++counts.none;
      bool refused = false;
      try {
        model::Design design = design_of(c.recipe);
        objective->adapt(design);
        model::saved_design(design);
      } catch (const Error&) {
        refused = true;
      }
      CHECK(refused);
      continue;
    }
    model::Design design = design_of(c.recipe);
    if (model::mask_support(design).masks > need_of(name)) {
      check_refused(name, c, corpus, counts);
      continue;
    }
    objective->adapt(design);
    CHECK_FALSE(probe(*objective, design, corpus).has_value());
    ++counts.clean;
  }
  CHECK(counts.clean + counts.refused + counts.none == combinations.size());
  return counts;
}

TEST_CASE("what training takes does not leak and what it refuses as a leak does") {
  const std::vector<Combination> combinations = all_combinations();
  CHECK(combinations.size() == (24 + nn::mixers().size()) * 6 * (nn::position_names().size() + 4));
  std::map<std::string, Counts, std::less<>> found;
  for (const ObjectiveKind* kind : objectives()) {
    if (kind->traits.reads_sources) continue;  // no recipe makes an encoder–decoder
    const Counts& counts = found[std::string(kind->name)] =
        check_objective(kind->name, combinations);
    CAPTURE(kind->name);
    MESSAGE(kind->name, ": ", counts.clean, " clean, ", counts.refused, " refused as leaks, ",
            counts.none, " are no designs");
    // Two towers hand on no scores.
    const bool fewer = kind->name == "two-tower" || kind->name == "univae";
    CHECK(counts.clean >= (fewer ? 600 : 1500));
  }
  for (const char* objective : {"clm", "tta", "two-tower", "unilm", "records", "mae-mask"}) {
    for (const char* position :
         {"convolutional", "convolutional(width=5)", "randomized(scheme=convolutional)"}) {
      CAPTURE(objective);
      CAPTURE(position);
      CHECK(found[objective].refused_positions.contains(position));
      if (std::string_view(objective) != "mae-mask")
        CHECK(found[objective].leaking_positions.contains(position));
    }
  }
  const char* causal = "convolutional(width=2, causal=true)";
  CHECK(found["tta"].refused_positions.contains("xpos"));
  CHECK(found["tta"].refused_positions.contains(causal));
  CHECK_FALSE(found["clm"].refused_positions.contains(causal));
  CHECK(found["mlm"].refused == 0);
}

/// One row that predicts the token after it.
class OneRow final : public Objective {
 public:
  OneRow() : Objective({}) {}
  void adapt(model::Design& design) const override { design.head.kind = model::HeadKind::kMasked; }
  bool takes_masks() const override { return true; }

 protected:
  Example make(records::Record& record) const override {
    Example example;
    example.ids = record.ids;
    example.rows = {2};
    example.targets = {record.ids[3]};
    return example;
  }
};

TEST_CASE("what a mask of some layer lets through is no leak of the network") {
  const OneRow objective;
  const Corpus corpus = small_corpus(false);
  const auto leak = [&](const char* masks, const char* position) {
    DesignRecipe recipe = small_recipe();
    recipe.position = position;
    model::Design design = design_of(recipe);
    objective.adapt(design);
    model::set_mask(masks, design);
    return probe(objective, design, corpus);
  };
  // Row 2 reads token 3 in one layer, or by way of another row.
  for (const char* masks : {"diagonal, full", "full, diagonal", "causal, dilated(1,2)"}) {
    CAPTURE(masks);
    CHECK_FALSE(leak(masks, "rope").has_value());
  }
  // It does in none, but a convolution of the input brings it.
  for (const char* masks : {"causal, diagonal", "diagonal, causal", "causal", "diagonal"}) {
    CAPTURE(masks);
    CHECK_FALSE(leak(masks, "rope").has_value());
    const auto found = leak(masks, "convolutional");
    REQUIRE(found.has_value());
    CHECK(found->row == 2);
    CHECK(found->token == 3);
  }
}

/// One item for each token that may be hidden at one place; all else is the same.
struct Choices {
  explicit Choices(std::size_t place) {
    for (TokenId id = 0; id < kWords; ++id) {
      ids.emplace_back(kIds.begin(), kIds.end());
      ids.back()[place] = id;
    }
  }
  /// All have the same number, which decides what is hidden.
  StepItem item(std::size_t k) const { return {.item = {.number = 0, .ids = ids[k]}, .epoch = 0}; }

  std::vector<std::vector<TokenId>> ids;
};

ObjectiveOptions one_hidden() {
  ObjectiveOptions requested;
  requested.seed = 1;
  requested.tokens = small_tokens();
  requested.mae.ratio = 1.0 / static_cast<double>(kIds.size());
  return requested;
}

/// Whether losses are −log of probabilities of which there is one for each token: so they are where
/// nothing that the network reads says which token it is.
bool sum_to_one(const std::vector<double>& losses) {
  double sum = 0;
  for (const double loss : losses) sum += std::exp(-loss);
  return std::abs(sum - 1) < 1e-4;
}

TEST_CASE("what mae hides reaches neither network") {
  const auto mask = find_objective("mae-mask").make(one_hidden());
  const Example example = mask->example({.number = 0, .ids = kIds}, 0);
  REQUIRE(example.rows.size() == 1);
  const Choices choices(static_cast<std::size_t>(example.rows.front()));
  std::size_t tested = 0, none = 0;
  const std::vector<Combination> combinations = all_combinations();
  for (const Combination& c : combinations) {
    CAPTURE(c.name);
    if (!can_be(c) || !c.recipe.mixer.empty()) {
      ++none;
      continue;
    }
    MaeModel model;
    model.encoder = design_of(c.recipe);
    adapt_mae(one_hidden(), model.encoder);
    model.decoder = decoder_design(decoder_recipe(c.recipe, 0.5, 1), one_hidden(), model.encoder);
    Parameters<float> parameters;
    add_mae(model, parameters);
    const StartOptions start{.seed = 5, .initializer_range = 0.3};
    initialize_parameters(model.decoder, model.decoder_map, start, parameters);
    initialize_parameters(model.encoder, model.encoder_map, start, parameters);
    MaeLoss<float> loss(one_hidden(), model, parameters, kernel::Precision::kF32);
    loss.prepare();
    std::vector<double> losses;
    for (std::size_t k = 0; k < choices.ids.size(); ++k) {
      const StepItem item = choices.item(k);
      losses.push_back(loss.evaluate({&item, 1}).mean());
    }
    CHECK(sum_to_one(losses));
    ++tested;
  }
  MESSAGE("mae: ", tested, " clean, ", none, " are no designs");
  CHECK(tested + none == combinations.size());
  CHECK(tested >= 1500);
}

/// What both networks of ELECTRA lose, by the token at the one selected place.
struct ElectraLosses {
  std::vector<double> generator, replaced;
  std::optional<double> original;  ///< of the second network, where the sample is the token
};

ElectraLosses electra_losses(const Combination& c, const ElectraLossOptions& options,
                             const Choices& choices) {
  const ObjectiveOptions requested = one_hidden();
  ElectraModel model;
  model.variant = find_electra("electra");
  model.second = design_of(c.recipe);
  adapt_electra(*model.variant, requested, model.second);
  model.generator = generator_design(*model.variant, c.recipe, 0.5, requested, model.second);
  Parameters<float> parameters;
  add_electra(model, true, parameters);
  const StartOptions start{.seed = 5, .initializer_range = 0.3};
  initialize_parameters(model.generator, model.generator_map, start, parameters);
  initialize_parameters(model.second, model.second_map, start, parameters);
  ElectraLoss<float> loss(options, model, parameters);
  loss.prepare();
  ElectraLosses found;
  for (std::size_t k = 0; k < choices.ids.size(); ++k) {
    const StepItem item = choices.item(k);
    const StepLosses losses = loss.evaluate({&item, 1});
    found.generator.push_back(losses.parts[0].report.mean());
    const double second = losses.parts[1].report.mean();
    if (losses.shares[0].count == 0) {
      found.original = second;
    } else {
      found.replaced.push_back(second);
    }
  }
  return found;
}

TEST_CASE("what electra selects reaches neither network") {
  ElectraLossOptions options;
  options.selection.selection.rate = 1.0 / static_cast<double>(kIds.size());
  options.selection.mask = 1;
  options.selection.seed = 1;
  options.selection.tokens = small_tokens();
  const ElectraItem selected =
      ElectraSelection(options.selection).select({.number = 0, .ids = kIds}, 0);
  REQUIRE(selected.rows.size() == 1);
  const Choices choices(static_cast<std::size_t>(selected.rows.front()));
  std::size_t tested = 0, none = 0;
  const std::vector<Combination> combinations = all_combinations();
  for (const Combination& c : combinations) {
    CAPTURE(c.name);
    if (!can_be(c)) {
      ++none;
      continue;
    }
    const ElectraLosses found = electra_losses(c, options, choices);
    CHECK(sum_to_one(found.generator));
    // The sample does not depend on the token, and all that the second one reads is the sample.
    CHECK(found.original.has_value());
    REQUIRE(found.replaced.size() + 1 == choices.ids.size());
    const auto [least, most] = std::ranges::minmax(found.replaced);
    CHECK(most - least < 1e-5);
    ++tested;
  }
  MESSAGE("electra: ", tested, " clean, ", none, " are no designs");
  CHECK(tested + none == combinations.size());
  CHECK(tested >= 1500);
}

}  // namespace
}  // namespace masque::train
