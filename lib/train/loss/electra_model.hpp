// The two networks of ELECTRA, of its ablations, and of Electric: designs and shared parameters.
// Clark et al. 2020, arXiv:2003.10555; arXiv:2012.08561.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/name_table.hpp"
#include "model/checkpoint/placed.hpp"
#include "train/data/objective.hpp"
#include "train/network/copy_gate.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// What the second network learns from the generator's samples. Texts are of one line.
struct ElectraVariant {
  std::string_view name;  ///< as on the command line
  std::string_view summary;
  bool all = false;         ///< a loss at all positions, not at the selected ones alone
  bool vocabulary = false;  ///< it predicts tokens; else which are replaced
  bool copies = false;      ///< its vocabulary has a CopyGate
  /// Electric: it gives energies, trained by noise-contrastive estimation. Its generator, the
  /// noise distribution, is a TwoTower.
  bool energy = false;
  double weight = 1;  ///< λ of its loss, unless another is given
};

/// All of them, by name.
std::span<const ElectraVariant> electra_variants();
/// nullptr if it is none of them.
const ElectraVariant* find_electra(std::string_view name);

/// Sets what the variant decides of the second network's design, as Objective::adapt.
void adapt_electra(const ElectraVariant& variant, const ObjectiveOptions& requested,
                   model::Design& design);

/// The same of the generator's.
void adapt_generator(const ElectraVariant& variant, const ObjectiveOptions& requested,
                     model::Design& design);

/// The generator of a second network made by `recipe`: as many layers, widths of `size` (0 … 1)
/// times its own, heads of the same size where that is possible, its tables. Electric's has as many
/// layers in each tower. Throws as design_of.
model::Design generator_design(const ElectraVariant& variant, const DesignRecipe& recipe,
                               double size, const ObjectiveOptions& requested,
                               const model::Design& second);

/// Which tables the networks have together, where they fit.
enum class SharedTables {
  kNone,
  kWords,  ///< those of words alone
  kAll,    ///< of words, positions and segments
};
/// "none", "words", "all".
NameTable<SharedTables> shared_tables_names();
/// The tables that each network then has of its own.
std::vector<model::Role> tables_apart(SharedTables shared);

/// Both, in one set of parameters.
struct ElectraModel {
  const ElectraVariant* variant = nullptr;
  model::Design generator, second;
  ParameterMap generator_map, second_map;
  /// The names of their tensors in files; none: those of model::plan_of.
  std::optional<model::ModelPlan> generator_plan, second_plan;
  std::vector<model::Role> apart;  ///< tables that each has of its own, though they fit
  CopyGateParameters gate;
  bool adversarial = false;              ///< the generator learns to be found out, not to be right
  Index baseline = ParameterMap::kNone;  ///< then: w (1, the generator's hidden size)
};

/// Adds the parameters of both networks, those of the generator with names that begin with
/// "generator.". `shared`: tables of words, positions and segments are those of the second network,
/// where they fit (shared_tables.hpp).
template <class T>
void add_electra(ElectraModel& model, bool shared, Parameters<T>& parameters);

}  // namespace masque::train
