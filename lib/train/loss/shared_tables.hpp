// Tables that the two networks of an objective have together.
#pragma once

#include <array>

#include "model/design.hpp"
#include "train/network/parameters.hpp"

namespace masque::train {

/// Words, positions and segments.
inline constexpr std::array<model::Role, 3> kSharedTables{
    model::Role::kWordTable, model::Role::kPositionTable, model::Role::kSegmentTable};

/// Whether a table of two designs has the same shape and the same rows. Learned positions of an
/// offset have others.
bool shares_table(model::Role role, const model::Design& own, const model::Design& other);

/// Those of the tables in `map`, a network of design `own`, that one of design `other` can have
/// too: for add_model.
ParameterMap shared_tables(const model::Design& own, const ParameterMap& map,
                           const model::Design& other);

}  // namespace masque::train
