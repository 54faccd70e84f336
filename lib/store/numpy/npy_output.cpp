#include "store/numpy/npy_output.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "store/numpy/npy.hpp"
#include "store/numpy/npy_descr.hpp"

namespace masque::store {

std::string npy_header_for(const std::string& path, DType dtype, const Shape& shape) {
  if (!npy_descr(dtype)) {
    throw InputError(path, fmt::format("npy has no type for {}, expected a conversion to F32 first",
                                       dtype_name(dtype)));
  }
  if (shape.size() > NpyLimits{}.rank) {
    throw InputError(path, fmt::format("an array of {} dimensions, npy has at most {}",
                                       shape.size(), NpyLimits{}.rank));
  }
  return write_npy_header(dtype, shape);
}

std::uint64_t npy_data_bytes(const std::string& path, DType dtype, const Shape& shape) {
  const auto bytes = byte_count(dtype, shape);
  if (!bytes) {
    throw InputError(path, fmt::format("an array of shape {} is too large", shape_text(shape)));
  }
  return *bytes;
}

}  // namespace masque::store
