// The tensor names of the family `masque`.
#pragma once

#include <vector>

#include "model/family.hpp"

namespace masque::model {

/// Rows of everything but the head.
std::vector<TensorRow> masque_rows(const Design& design);

/// Rows of what the position scheme of a design trains.
std::vector<TensorRow> position_rows(const Design& design);
/// The scales of scores that heads learn (ssmax_learned).
std::vector<TensorRow> score_scale_rows(const Design& design);

/// Rows of the latent bottlenecks of a design; none without. Layers are numbered in their names.
std::vector<TensorRow> latent_rows(const Design& design);

/// The plan of a head that is there: not of HeadKind::kNone.
HeadPlan masque_head(const Design& design, const HeadDesign& head);

}  // namespace masque::model
