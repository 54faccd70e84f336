// Types and metadata of GGUF files: types of tensors, values of 13 types, read strictly, and new
// ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/little_endian.hpp"
#include "base/types.hpp"
#include "store/tensor_info.hpp"
#include "store/violation.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

// The bytes of a GGUF file's header, one after the other, each compared with what is left before
// memory is allocated.

/// Fills `out` with bytes of a file from byte `offset` on, inside of it.
using GgufRead = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// Reads forward. Functions that return bool return false at the first broken rule, which
/// violation() is from then on. For one thread.
class GgufCursor {
 public:
  /// Begins at byte 0 of a file of `size` bytes that `read` reads, which must outlive the cursor.
  GgufCursor(const GgufRead& read, std::uint64_t size) : read_(read), size_(size) {}

  /// The byte of the file that is read next.
  std::uint64_t offset() const { return at_; }
  /// Bytes from there to the end of the file.
  std::uint64_t left() const { return size_ - at_; }
  /// The first broken rule; nothing as long as none is.
  const std::optional<Violation>& violation() const { return violation_; }

  /// Notes a broken `rule` with its `message`, the byte `offset` and the name of the `tensor` that
  /// it is about, unless one is noted already; returns false.
  bool fail(std::string rule, std::string message, std::uint64_t offset, std::string tensor = {});

  /// Sets `out` to the next number, little-endian, in the width of its type.
  template <class Number>
  bool number(Number& out) {
    if (!need(sizeof(Number))) return false;
    fetch(sizeof(Number));
    out = load_number<Number>(buffer_.data() + (at_ - begin_));
    at_ += sizeof(Number);
    return true;
  }

  /// Adds the next `count` bytes to `out`.
  bool bytes(std::uint64_t count, std::string& out);

  /// Sets `out` to the next text: a length of 64 bits and so many bytes, at most `most`.
  bool text(std::uint64_t most, std::string& out);

 private:
  bool need(std::uint64_t count);
  /// Makes the next `count` bytes, a few, lie in the buffer.
  void fetch(std::uint64_t count);

  const GgufRead& read_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;  ///< of the buffer, in the file
  std::optional<Violation> violation_;
};

// The numbers that GGUF files have for types of elements and of metadata.

/// A type of tensors. Quantised ones keep their elements in blocks along the last dimension of a
/// shape.
struct GgmlType {
  std::uint32_t number = 0;                   ///< ggml's, as files have it
  std::string_view name;                      ///< ggml's: "F32", "Q4_K"; static text
  std::uint64_t block_elements = 1;           ///< elements of a block; 1: not quantised
  std::uint64_t block_bytes = 1;              ///< bytes of a block
  std::optional<DType> dtype = std::nullopt;  ///< nothing: quantised
};

/// The type with this `number`, which lives for ever; nullptr for those that were removed from ggml
/// or never are in files.
const GgmlType* find_ggml_type(std::uint32_t number);
/// The type called `name`, which lives for ever; nullptr for those that were removed from ggml or
/// never are in files.
const GgmlType* find_ggml_type(std::string_view name);
/// The type whose elements are of the type `dtype`, which lives for ever; nullptr if there is none.
const GgmlType* ggml_type_of(DType dtype);

/// Types of metadata values, by their numbers in files.
enum class GgufType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// Metadata.

/// Reads the next value of a header at `cursor` into `value`, which has its key and nothing else:
/// at most `most` bytes. False: a broken rule (gguf-value-type, gguf-array, gguf-bool, gguf-string,
/// not-utf8, limit-metadata, too-short).
bool read_gguf_value(GgufCursor& cursor, std::uint64_t most, TypedValue& value);

/// The whole number that `value` is, in whatever type; nothing for other values and negative ones.
std::optional<std::uint64_t> gguf_integer(const TypedValue& value);

/// The texts of `value`, a STRING[]; nothing for other values.
std::optional<std::vector<std::string>> gguf_texts(const TypedValue& value);

/// The bytes of the elements of `value`, an array of numbers of this `type`, little-endian: a view
/// of it; nothing for other values.
std::optional<std::string_view> gguf_elements(const TypedValue& value, GgufType type);

/// How many elements the array `value` has; nothing for other values.
std::optional<std::uint64_t> gguf_array_count(const TypedValue& value);

/// Makes the STRING `text` under `key`.
TypedValue make_gguf_text(std::string key, std::string text);
/// Makes the UINT32 `number` under `key`.
TypedValue make_gguf_uint32(std::string key, std::uint32_t number);
/// Makes the FLOAT32 `number` under `key`.
TypedValue make_gguf_float32(std::string key, float number);
/// Makes the BOOL `flag` under `key`.
TypedValue make_gguf_bool(std::string key, bool flag);
/// Makes the STRING[] of `texts` under `key`.
TypedValue make_gguf_texts(std::string key, std::span<const std::string> texts);
/// Makes an array under `key` of numbers of `type`, one with a fixed size: `elements` are their
/// bytes, little-endian, a whole number of them (a MASQUE_CHECK).
TypedValue make_gguf_array(std::string key, GgufType type, std::string_view elements);
/// Makes the whole `number` under the key and in the type that `like` has, which is one of whole
/// numbers. Throws InputError, with `path`, if it does not fit.
TypedValue make_gguf_integer(const TypedValue& like, std::uint64_t number, const std::string& path);

/// The first one of `values` under `key`; nullptr if there is none. Cost O(values).
const TypedValue* find_typed(std::span<const TypedValue> values, std::string_view key);

/// Which part of a split model a file is.
struct GgufPart {
  std::uint64_t number = 0;  ///< from 0
  std::uint64_t count = 1;   ///< how many parts there are
};
/// Which part of a split model the file with this `metadata` is, by split.no and split.count;
/// nothing for a whole one.
std::optional<GgufPart> gguf_part(std::span<const TypedValue> metadata);

/// Appends `text` to `out`: its length in 64 bits, and its bytes.
void append_text(std::string& out, std::string_view text);

}  // namespace masque::store
