// The optimizer's moments of a larger model, from the state of the run that made the small one.
//
// A model of exact copies has the small model's loss, so the gradients of all copies of a weight
// sum to the gradient of that weight, each times the share of it that the copy has; and copies have
// equal gradients. Of n copies w' = s w each has the gradient g' = g / (n s). The first moment, a
// mean of gradients, grows as they do, and the second, a mean of squares, by the square of that.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "grow/grown_elements.hpp"
#include "grow/width_rules.hpp"
#include "model/family.hpp"
#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::grow {

/// Collects the moments of a larger model, tensor by tensor. With other rules than exact copies
/// they grow as if all copies of a weight had equal gradients.
class GrownMoments {
 public:
  /// `folder` is that of the small model and may have a state; what this does not have is left out.
  /// The plans of both models, `before` and `after`, must outlive it. `settings` are the growth's.
  /// Throws InputError for a state that cannot be read or was changed since it was written, and
  /// Interrupted.
  GrownMoments(const std::string& folder, const model::ModelPlan& before,
               const model::ModelPlan& after, const WidthSettings& settings);

  /// The moments of all places of a tensor `to` of the larger model, which is made from `from`.
  /// anew  what the tensor holds is not what training has made of it: an added layer, or constants.
  /// Its first moment begins at 0; the second one stays, so that the first steps are no larger
  /// than others.
  void add(const model::PlacedTensor& from, const model::PlacedTensor& to, bool anew);

  /// A note on what is kept of the state and what is left out. Requires has_state().
  std::string summary() const;

  /// The state to write: moments without values, and the updates that they have had. Nothing if
  /// there are none. This object must outlive the writing. To be called once, last.
  std::optional<store::OutputWeights> take();

  /// Whether the folder has a state.
  bool has_state() const { return state_.has_value(); }

 private:
  const model::ModelPlan& before_;
  const model::ModelPlan& after_;
  WidthSettings settings_;
  std::optional<store::Checkpoint> state_;
  std::set<std::string> used_, added_;  ///< parameters of both models
  store::OutputWeights weights_;
};

}  // namespace masque::grow
