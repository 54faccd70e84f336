// Partitioned variables of a bundle: the entry of the whole names its slices, which have entries of
// their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "store/tensorflow/bundle_entry.hpp"
#include "store/tensorflow/sliced_tensor.hpp"

namespace masque::store {

/// A tensor in slices: a grid, and the entry of each cell, row-major.
struct SlicedEntry {
  SliceGrid grid;                         ///< where the cells lie
  std::vector<const BundleEntry*> cells;  ///< entries that `find` gave; as many as grid.cells
};

/// The slices of `whole` as a grid. `find` gives the entry of a key, nullptr if there is none. The
/// rule "bundle-slice": they do not tile the tensor as a grid does, or an entry is missing or says
/// something else than the whole one; "shape-overflow"; "unknown-dtype". The entries' places are
/// not looked at. Cost O(slices · log).
Checked<SlicedEntry> grid_of_slices(
    const BundleEntry& whole,
    const std::function<const BundleEntry*(const std::string& key)>& find);

}  // namespace masque::store
