// Masks as bare bits, for other programs.
#pragma once

#include <string>

#include "draw/figure.hpp"

namespace masque::draw {

/// A line for each row: '#' for visible cells, '.' for blocked ones, nothing else. Throws
/// UsageError if there are cells of another kind.
std::string ascii(const Grid& grid);

/// A bitmap in the format PBM (P4): visible cells are black. Throws UsageError as `ascii`, and for
/// a grid without cells.
std::string pbm(const Grid& grid);

}  // namespace masque::draw
