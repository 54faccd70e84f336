// The tensor names of the family `masque`.
#pragma once

#include <vector>

#include "model/family.hpp"

namespace masque::model {

/// Rows of everything that `design` has but the head, the latent bottlenecks and the detector.
std::vector<TensorRow> masque_rows(const Design& design);

/// Rows of what the position scheme of `design` trains; none without a scheme.
std::vector<TensorRow> position_rows(const Design& design);
/// Rows of the scales of scores that heads of `design` learn (ssmax_learned).
std::vector<TensorRow> score_scale_rows(const Design& design);

/// Rows of the latent bottlenecks of `design`; none without. Layers are numbered in their names.
std::vector<TensorRow> latent_rows(const Design& design);

/// The plan of `head` in `design`: not of HeadKind::kNone.
HeadPlan masque_head(const Design& design, const HeadDesign& head);

}  // namespace masque::model
