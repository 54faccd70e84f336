// Tensors that lie in slices: cells of a grid, each row-major in a place of its own.
#pragma once

#include <memory>
#include <vector>

#include "store/tensor_info.hpp"

namespace masque::store {

/// Where the bytes of a cell begin.
struct CellPlace {
  std::size_t file = 0;     ///< number of the data file
  std::uint64_t begin = 0;  ///< byte in it
};

/// A tensor cut into cells. The product of the numbers of cuts is the number of cells.
struct SliceGrid {
  Shape shape;                      ///< of the whole: elements in each dimension
  std::uint64_t element_bytes = 1;  ///< bytes of an element
  std::vector<Shape> cuts;          ///< for each dimension: where cells begin, ascending from 0
  std::vector<CellPlace> cells;     ///< row-major
};

/// The files that cells lie in; shared with whoever reads.
using BundleFiles = std::shared_ptr<const std::vector<InputFile>>;

/// Makes a reader that gathers the cells of `grid`. Of those in `own_file` the file is what the
/// reader is given; for others `files` must be there (a MASQUE_CHECK of the reader). Each stretch
/// of a cell that lies in order in the tensor is one read: whole cells where only the first
/// dimension is cut.
std::shared_ptr<const TensorReader> sliced_reader(SliceGrid grid, std::size_t own_file,
                                                  BundleFiles files);

}  // namespace masque::store
