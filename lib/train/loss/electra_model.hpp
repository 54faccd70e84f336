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
  std::string_view name;     ///< as on the command line
  std::string_view summary;  ///< what the second network learns
  bool all = false;          ///< a loss at all positions, not at the selected ones alone
  bool vocabulary = false;   ///< it predicts tokens; else which are replaced
  bool copies = false;       ///< its vocabulary has a CopyGate
  /// Electric: it gives energies, trained by noise-contrastive estimation. Its generator, the
  /// noise distribution, is a TwoTower.
  bool energy = false;
  double weight = 1;  ///< λ of its loss, unless another is given
};

/// All of them, sorted by name.
std::span<const ElectraVariant> electra_variants();
/// Returns the variant called `name`; nullptr if it is none of them.
const ElectraVariant* find_electra(std::string_view name);

/// Sets what `variant` decides of the second network's `design`, as Objective::adapt. Of
/// `requested` the tokens and whether there are pairs are read, here and below.
void adapt_electra(const ElectraVariant& variant, const ObjectiveOptions& requested,
                   model::Design& design);

/// Sets what `variant` decides of the generator's `design`, as `requested` and Objective::adapt:
/// a masked-LM head, and two towers for Electric.
void adapt_generator(const ElectraVariant& variant, const ObjectiveOptions& requested,
                     model::Design& design);

/// Returns the generator of a network of design `second`, made by `recipe`, in `variant`: as many
/// layers, widths of `size` (more than 0, at most 1) times its own, heads of the same size where
/// that is possible, its tables, and what adapt_generator() sets for `requested`. Electric's has as
/// many layers in each tower. Throws UsageError for another size, and as design_of.
model::Design generator_design(const ElectraVariant& variant, const DesignRecipe& recipe,
                               double size, const ObjectiveOptions& requested,
                               const model::Design& second);

/// Which tables the networks have together, where they fit.
enum class SharedTables {
  kNone,   ///< each network has its own
  kWords,  ///< those of words alone
  kAll,    ///< of words, positions and segments
};
/// "none", "words", "all".
NameTable<SharedTables> shared_tables_names();
/// Returns the roles of the tables that each network then has of its own: those of kSharedTables
/// that `shared` leaves out.
std::vector<model::Role> tables_apart(SharedTables shared);

/// Both networks, in one set of parameters.
struct ElectraModel {
  const ElectraVariant* variant = nullptr;  ///< of electra_variants()
  model::Design generator;                  ///< of the generator
  model::Design second;                     ///< of the second network, which is kept
  ParameterMap generator_map;               ///< places of the generator; add_electra() sets it
  ParameterMap second_map;                  ///< places of the second; add_electra() sets it
  /// The names of the generator's tensors in files; none: those of model::plan_of.
  std::optional<model::ModelPlan> generator_plan;
  /// The names of the second network's tensors in files; none: those of model::plan_of.
  std::optional<model::ModelPlan> second_plan;
  std::vector<model::Role> apart;        ///< tables that each has of its own, though they fit
  CopyGateParameters gate;               ///< with ElectraVariant::copies; add_electra() sets it
  bool adversarial = false;              ///< the generator learns to be found out, not to be right
  Index baseline = ParameterMap::kNone;  ///< then: w (1, the generator's hidden size)
};

/// Adds the parameters of both networks of `model` to `parameters`, those of the generator with
/// names that begin with "generator.", and sets their places in `model`. `shared`: tables of words,
/// positions and segments are those of the second network, where they fit (shared_tables.hpp), but
/// for ElectraModel::apart. T is float or double.
template <class T>
void add_electra(ElectraModel& model, bool shared, Parameters<T>& parameters);

}  // namespace masque::train
