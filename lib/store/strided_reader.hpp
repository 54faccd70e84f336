// Tensors whose elements do not lie in order: transposed, cut out, repeated, or big-endian.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "store/tensor_info.hpp"

namespace masque::store {

/// Where the elements of a tensor lie in its file.
struct StridedPlace {
  std::uint64_t begin = 0;          ///< byte of the first element
  std::uint64_t element_bytes = 1;  ///< a power of two, at most 8
  Shape sizes;                      ///< the product is above 0
  Shape strides;                    ///< in elements; 0: the same ones again
  std::uint64_t swap_bytes = 1;     ///< of a big-endian number: element_bytes, or half of a complex
};

/// Whether the elements of a tensor with these `sizes` and `strides`, in elements and as many, lie
/// one after the other, row-major: then no reader is needed, but for other byte orders.
bool is_contiguous(const Shape& sizes, const Shape& strides);

/// Elements that were gathered ahead, for the readers of one file.
class StridedTile;
/// Makes an empty tile, for all readers of a file to share.
std::shared_ptr<StridedTile> make_strided_tile();

/// Makes a reader that gathers the elements at `place`, reading as little and in as large pieces as
/// their order allows. Where that is not the order of the output (transposed matrices), small reads
/// are served from 16 MiB that are gathered at once and kept in `tile` until the tensor's last byte
/// was read. A read takes at most 4 MiB besides that.
std::shared_ptr<const TensorReader> make_strided_reader(const StridedPlace& place,
                                                        std::shared_ptr<StridedTile> tile);

/// The bytes [first, second) of the file from the first element to the end of the last, if `reader`
/// is one of make_strided_reader; else nothing. Views of the same elements can lie in each other
/// without having the same bytes.
std::optional<std::pair<std::uint64_t, std::uint64_t>> strided_extent(const TensorReader& reader);

}  // namespace masque::store
