// Whether a larger model has the function of the small one, by what was done to it.
#pragma once

#include "grow/growth.hpp"
#include "model/checkpoint/load.hpp"

namespace masque::grow {

/// Sets `sameness`, `rounded` and `unit_roundoff` of `report`, which has both designs, for a growth
/// by `request`. `found` are the tensors of the small model, whose types those of the larger one
/// have.
void judge(const GrowthRequest& request, const model::LoadPlan& found, GrowthReport& report);

}  // namespace masque::grow
