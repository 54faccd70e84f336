// How other programs write masks down: a registry of conventions, between which masks are
// converted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "exchange/matrix_source.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"
#include "store/numpy/array.hpp"

namespace masque::exchange {

/// What Convention::decode needs besides the array.
struct DecodeRequest {
  std::string path;  ///< of the file, for messages
  /// Which mask of a batch, from 0; none: the array must have one mask. The conventions with a
  /// number for each cell read it.
  std::optional<Index> item = {};
  /// Of the mask; `intervals` and `packed` need them, the others do not read them.
  std::optional<mask::Lengths> lengths = {};
};

/// A way to write a mask as numbers. Views are of text that lives as long as the program.
struct Convention {
  std::string_view name;    ///< "allow", "cu_seqlens": for find_convention()
  std::string_view what;    ///< one line: shape, meaning, which programs use it
  std::string_view header;  ///< first line of a TSV file; empty for none
  /// Throws InputError if no array of this `dtype` and `shape` is of this convention, for files
  /// whose elements are not read yet. decode() calls it, too.
  void (*check)(DType dtype, const Shape& shape, const DecodeRequest& request);
  /// The mask in an array. Throws InputError if the array is not of this convention, or if the mask
  /// would take more than mask::BitMatrix::kMaxBytes; UsageError without `lengths` that it needs.
  mask::BitMatrix (*decode)(const store::Array& array, const DecodeRequest& request);
  /// The array for a mask, which it shares. `path` is that of the file, for messages. Throws
  /// InputError if the convention cannot hold the mask.
  MatrixSource (*encode)(const mask::Mask& mask, const std::string& path);
  unsigned cell_bits;  ///< bits for every cell; 0: grows with the runs only
  /// Whether programs of this convention may take a row without keys for one that reads all.
  bool empty_row_warning = false;
};

/// The mask in the file `path` of the convention `convention`, as read_matrix() reads it and
/// `request` says; its shape is checked before its elements are read. Throws InputError.
mask::BitMatrix read_mask(const Convention& convention, const std::string& path,
                          const DecodeRequest& request);

/// All conventions, sorted by name; they stay as long as the program.
std::span<const Convention* const> conventions();

/// The convention `name`; nullptr if there is none.
const Convention* find_convention(std::string_view name);

/// Adds a convention at program start: a constant of this type in the file of the convention.
struct ConventionRegistration {
  /// Registers `convention`, which must live as long as the program.
  explicit ConventionRegistration(const Convention& convention);
};

}  // namespace masque::exchange
