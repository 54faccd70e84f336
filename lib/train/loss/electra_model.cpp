#include "train/loss/electra_model.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/checkpoint/save.hpp"
#include "model/masks.hpp"
#include "train/data/record_example.hpp"
#include "train/loss/shared_tables.hpp"

namespace masque::train {

namespace {

constexpr std::array<ElectraVariant, 5> kVariants{{
    {.name = "all-tokens-mlm",
     .summary = "all tokens of a text with a generator's samples in it, with a gate that copies",
     .all = true,
     .vocabulary = true,
     .copies = true},
    {.name = "electra",
     .summary = "which tokens a generator has replaced",
     .all = true,
     .weight = 50},
    {.name = "electra-15", .summary = "the same, at the selected positions alone", .weight = 50},
    {.name = "electric",
     .summary = "energies of tokens, by noise-contrastive estimation; a TwoTower draws the noise",
     .all = true,
     .energy = true,
     .weight = 50},
    {.name = "replace-mlm",
     .summary = "selected tokens, with a generator's samples in their places",
     .vocabulary = true},
}};

DesignNeeds needs_of(std::string_view name, const ObjectiveOptions& requested,
                     model::HeadKind head) {
  return {.objective = name,
          .head = head,
          .segments = requested.pairs,
          .vocab_size = requested.tokens.size,
          .mask_token = requested.tokens.mask};
}

}  // namespace

std::span<const ElectraVariant> electra_variants() { return kVariants; }

const ElectraVariant* find_electra(std::string_view name) {
  const auto* found = std::ranges::find(kVariants, name, &ElectraVariant::name);
  return found == kVariants.end() ? nullptr : found;
}

void adapt_electra(const ElectraVariant& variant, const ObjectiveOptions& requested,
                   model::Design& design) {
  const auto kind = variant.vocabulary ? model::HeadKind::kMasked
                    : variant.energy   ? model::HeadKind::kEnergy
                                       : model::HeadKind::kDiscriminator;
  adapt_design(needs_of(variant.name, requested, kind), design);
  if (variant.vocabulary) return;
  design.head = {};
  design.head.kind = kind;
  design.head.tied = false;
  // E = wᵀ h, with nothing between.
  if (variant.energy) return;
  design.head.transform = true;
  design.head.activation = design.activation;
}

void adapt_generator(const ElectraVariant& variant, const ObjectiveOptions& requested,
                     model::Design& design) {
  DesignNeeds needs = needs_of("generator", requested, model::HeadKind::kMasked);
  if (variant.energy) {
    model::set_towers(design);
    needs.streams = model::Streams::kTowers;
  }
  adapt_design(needs, design);
}

model::Design generator_design(const ElectraVariant& variant, const DesignRecipe& recipe,
                               double size, const ObjectiveOptions& requested,
                               const model::Design& second) {
  if (!(size > 0 && size <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected more than 0 and at most 1",
                                 field("generator_size"), size));
  }
  model::Design design = design_of(scaled_recipe(recipe, size));
  for (Index l = 0; variant.energy && l < recipe.num_hidden_layers; ++l) {
    design.layers.push_back(design.layers[static_cast<std::size_t>(l)]);
    design.layers.back().weights = design.num_hidden_layers++;
  }
  design.embedding_size = second.embedding_size;
  design.type_vocab_size = second.type_vocab_size;
  design.pad_token_id = second.pad_token_id;
  design.mask_token_id = second.mask_token_id;
  adapt_generator(variant, requested, design);
  return design;
}

NameTable<SharedTables> shared_tables_names() {
  static constexpr std::array<std::pair<std::string_view, SharedTables>, 3> kNames{
      {{"none", SharedTables::kNone},
       {"words", SharedTables::kWords},
       {"all", SharedTables::kAll}}};
  return kNames;
}

std::vector<model::Role> tables_apart(SharedTables shared) {
  if (shared == SharedTables::kAll) return {};
  std::vector<model::Role> apart(kSharedTables.begin(), kSharedTables.end());
  if (shared == SharedTables::kWords) std::erase(apart, model::Role::kWordTable);
  return apart;
}

template <class T>
void add_electra(ElectraModel& model, bool shared, Parameters<T>& parameters) {
  const auto add = [&](const model::Design& design, const std::optional<model::ModelPlan>& own,
                       const std::string& prefix, const ParameterMap& with) {
    const model::ModelPlan plan = own ? *own : model::plan_of(design);
    return add_model(plan, model::head_like(plan, design.head), prefix, with, parameters);
  };
  model.second_map = add(model.second, model.second_plan, "", ParameterMap());
  if (model.adversarial) {
    model.baseline = parameters.add(
        {.name = "generator.baseline", .rows = 1, .columns = model.generator.hidden_size});
  }
  if (model.variant->copies) model.gate = add_copy_gate(model.second.hidden_size, "", parameters);
  ParameterMap tables;
  if (shared) tables = shared_tables(model.second, model.second_map, model.generator);
  for (const model::Role role : model.apart) tables.set(role, false, 0, 0, ParameterMap::kNone);
  model.generator_map = add(model.generator, model.generator_plan, "generator.", tables);
}

template void add_electra(ElectraModel&, bool, Parameters<float>&);
template void add_electra(ElectraModel&, bool, Parameters<double>&);

}  // namespace masque::train
