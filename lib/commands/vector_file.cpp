#include "commands/vector_file.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/numpy/array.hpp"

namespace masque::commands {

namespace {

template <class T>
void append(T value, std::vector<std::byte>& to) {
  const Bytes bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

void VectorFile::check_name(const std::string& path) {
  if (!path.ends_with(".npy") && !path.ends_with(".safetensors"))
    throw UsageError("-o: expected a file name that ends in .npy or .safetensors");
}

VectorFile::VectorFile(std::string path, std::string tensor, Index columns,
                       kernel::Precision precision)
    : path_(std::move(path)),
      tensor_(std::move(tensor)),
      columns_(columns),
      wide_(precision == kernel::Precision::kF64) {}

void VectorFile::add(std::span<const double> row) {
  MASQUE_CHECK(std::ssize(row) == columns_);
  for (const double value : row) {
    if (wide_) {
      append(value, bytes_);
    } else {
      append(static_cast<float>(value), bytes_);
    }
  }
  ++rows_;
}

void VectorFile::finish() const {
  const Shape shape{rows_, static_cast<std::uint64_t>(columns_)};
  const DType dtype = wide_ ? DType::kF64 : DType::kF32;
  const auto fill = [this](std::uint64_t offset, MutableBytes out) {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
    std::copy_n(begin, out.size(), out.begin());
  };
  if (path_.ends_with(".npy")) {
    store::write_npy(path_, dtype, shape, fill, 1);
    return;
  }
  store::OutputTensor tensor{{tensor_, dtype, shape, 0, bytes_.size(), 0}, store::Computed{fill}};
  store::write_checkpoint_file(path_, {.tensors = {std::move(tensor)}}, {.threads = 1});
}

}  // namespace masque::commands
