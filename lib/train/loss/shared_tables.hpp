// Tables that the two networks of an objective have together.
#pragma once

#include <array>

#include "model/design.hpp"
#include "train/network/parameters.hpp"

namespace masque::train {

/// The roles of the tables that can be shared: words, positions and segments.
inline constexpr std::array<model::Role, 3> kSharedTables{
    model::Role::kWordTable, model::Role::kPositionTable, model::Role::kSegmentTable};

/// Whether the table of `role` has the same shape and the same rows in the designs `own` and
/// `other`. Learned positions with another offset have other rows.
bool shares_table(model::Role role, const model::Design& own, const model::Design& other);

/// Returns those of the tables in `map`, a network of design `own`, that one of design `other` can
/// have too: for add_model.
ParameterMap shared_tables(const model::Design& own, const ParameterMap& map,
                           const model::Design& other);

}  // namespace masque::train
