// Tensors that lie in slices: cells of a grid, each row-major in a place of its own.
#pragma once

#include <memory>
#include <vector>

#include "store/tensor_info.hpp"

namespace masque::store {

/// Where the bytes of a cell begin.
struct CellPlace {
  std::size_t file = 0;
  std::uint64_t begin = 0;
};

/// A tensor cut into cells. The product of the numbers of cuts is the number of cells.
struct SliceGrid {
  Shape shape;
  std::uint64_t element_bytes = 1;
  std::vector<Shape> cuts;       ///< for each dimension: where cells begin, ascending from 0
  std::vector<CellPlace> cells;  ///< row-major
};

/// The files that cells lie in; shared with whoever reads.
using BundleFiles = std::shared_ptr<const std::vector<InputFile>>;

/// Gathers the cells. Of those in `own_file` the file is what the reader is given; for others
/// `files` must be there. Each stretch of a cell that lies in order in the tensor is one read:
/// whole cells where the first dimension is cut.
std::shared_ptr<const TensorReader> sliced_reader(SliceGrid grid, std::size_t own_file,
                                                  BundleFiles files);

}  // namespace masque::store
