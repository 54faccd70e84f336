#include "store/numpy/array_writer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/numpy/npy_output.hpp"

namespace masque::store {

namespace {

OutputTensor tensor_of(std::string name, DType dtype, const Shape& shape, Computed source) {
  return {{.name = std::move(name), .dtype = dtype, .shape = shape}, std::move(source)};
}

Computed copy_of(const Array& array) {
  MASQUE_CHECK(byte_count(array.dtype, array.shape) == array.data.size());
  return {[&array](std::uint64_t offset, MutableBytes out) {
    const Bytes from = Bytes(array.data).subspan(offset, out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }};
}

}  // namespace

void write_npy(const std::string& path, DType dtype, const Shape& shape, const FillFunction& fill,
               int threads) {
  OutputWeights weights;
  weights.writer = "npy";
  weights.tensors.push_back(tensor_of(std::string(kNpyName), dtype, shape, Computed{fill}));
  WriteOptions options;
  options.threads = threads;
  write_checkpoint_file(path, weights, options);
}

void write_npy(const std::string& path, const Array& array) {
  write_npy(path, array.dtype, array.shape, copy_of(array).fill);
}

void write_npz(const std::string& path, std::span<const Array> arrays) {
  OutputWeights weights;
  weights.writer = "npz";
  weights.tensors.reserve(arrays.size());
  for (const Array& array : arrays)
    weights.tensors.push_back(tensor_of(array.name, array.dtype, array.shape, copy_of(array)));
  write_checkpoint_file(path, weights, {});
}

}  // namespace masque::store
