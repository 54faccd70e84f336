// How the residual weights of Admin start.
#pragma once

#include "train/data/objective.hpp"
#include "train/network/network.hpp"

namespace masque::train {

/// Sets the ω of a new model with NormPlacement::kAdmin, the `network` at the places `map` of
/// `parameters`; leaves models of other placements as they are. With f_1, f_2, … the parts of all
/// layers in their order (attention and feed-forward layer in turn), all elements of the vector of
/// part i are √(1 + Σ_{j<i} mean f_j²): the means over what the first `sequences` of `corpus`, as
/// examples of `objective`, give in one pass without dropout in which every ω is 1. Liu et al.
/// 2020, arXiv:2004.08249, section 4.3, with 1 for the states in front of the first part, whose
/// norm they are. Throws UsageError for two towers, and as Objective::check.
void start_residuals(const Objective& objective, const Corpus& corpus, Index sequences,
                     const ParameterMap& map, Network<float>& network,
                     Parameters<float>& parameters);

}  // namespace masque::train
