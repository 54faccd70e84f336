// What a checkpoint says about its tensors.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/types.hpp"
#include "tensor/dtype.hpp"
#include "tensor/quantized_block.hpp"

namespace masque::store {

/// Elements that do not simply lie in their file in order: views with strides, other byte orders,
/// packed members.
class TensorReader {
 public:
  TensorReader() = default;
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;
  virtual ~TensorReader() = default;

  /// Fills `out` with the tensor's bytes from byte `offset` of it, row-major, little-endian,
  /// without gaps. Inside of the tensor. `file` is the one that the tensor is in. Thread-safe.
  /// Throws InputError.
  virtual void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const = 0;

  /// The blocks that the file has where read() gives floats; nullptr: it has none.
  virtual const BlockFormat* block_format() const { return nullptr; }
  /// Fills `out`, as large as whole blocks of block_format(), with the blocks of the elements from
  /// `first` on, all of one row. Thread-safe. Throws InputError.
  virtual void read_blocks(const InputFile& /*file*/, std::uint64_t /*first*/,
                           MutableBytes /*out*/) const {
    MASQUE_CHECK(false);
  }
};

/// One tensor of a file. To its users its bytes are row-major, little-endian, without gaps.
struct TensorInfo {
  std::string name;           ///< as the file has it
  DType dtype = DType::kF32;  ///< type of the elements
  Shape shape;                ///< elements in each dimension; empty: a scalar
  std::uint64_t begin = 0;    ///< first byte in its file
  std::uint64_t end = 0;      ///< one past the last; with a reader: begin + the tensor's bytes
  std::size_t file = 0;       ///< which file of the checkpoint
  /// What reads it; nullptr: the bytes from begin to end of the file are the tensor's.
  std::shared_ptr<const TensorReader> reader = nullptr;
  /// An earlier tensor of the same file that has its elements in the same place; empty: none.
  std::string alias_of = {};

  /// Bytes of the tensor as it is read.
  std::uint64_t bytes() const { return end - begin; }
  /// Number of elements: the product of `shape`.
  std::uint64_t elements() const { return element_count(shape).value_or(0); }
  /// Elements of one row: the product of all dimensions but the first.
  std::uint64_t row_elements() const;
};

/// A tensor whose elements have no DType: quantised blocks, strings. It is listed, and carried as
/// bytes between files of one format; nothing looks inside.
struct OpaqueTensor {
  std::string name;         ///< as the file has it
  std::string type;         ///< as its format calls it: "Q4_K", "STRING"
  Shape shape;              ///< elements in each dimension
  std::uint64_t begin = 0;  ///< first byte in its file
  std::uint64_t end = 0;    ///< one past the last
  std::size_t file = 0;     ///< which file of the checkpoint
  /// Of its bytes, as the format keeps it with them; 0: the format keeps none.
  std::uint32_t checksum = 0;

  /// Bytes in the file.
  std::uint64_t bytes() const { return end - begin; }
};

/// Fills `out` with the bytes of `tensor`, which is one of `file`, from byte `offset` of it,
/// whatever way it is kept. Inside of the tensor. Thread-safe. Throws InputError.
void read_tensor(const InputFile& file, const TensorInfo& tensor, std::uint64_t offset,
                 MutableBytes out);

/// Key and value pairs of a file, in file order.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// The value of the first pair of `metadata` with this `key`, which lives as long as that; nullptr
/// if absent. Cost O(pairs).
const std::string* find_metadata(const Metadata& metadata, std::string_view key);

/// A metadata value of a format with types for them. Texts are in Metadata, too, from where they
/// are written.
struct TypedValue {
  std::string key;    ///< the name of the value
  std::string type;   ///< as its format calls it: "UINT32", "STRING", "STRING[]"
  std::string text;   ///< a text as it is; others for people, of a long array the first values
  std::string json;   ///< the same as JSON; empty: a text
  std::string bytes;  ///< as the file has it, with its type
};

/// Sets the value of `key` in `metadata` to `value`, keeping its place or adding it so that sorted
/// keys stay sorted; at the end if they are not.
void set_metadata(Metadata& metadata, std::string_view key, std::string value);

/// Removes the first pair with this `key` from `metadata` if it is there.
void erase_metadata(Metadata& metadata, std::string_view key);

}  // namespace masque::store
