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

struct DecodeRequest {
  std::string path;                           ///< for messages
  std::optional<Index> item = {};             ///< which mask of a batch
  std::optional<mask::Lengths> lengths = {};  ///< of conventions that do not hold them
};

/// A way to write a mask as numbers.
struct Convention {
  std::string_view name;
  std::string_view what;    ///< one line
  std::string_view header;  ///< of a TSV file; empty for none
  /// The mask in an array. Throws InputError if the array is not of this convention.
  mask::BitMatrix (*decode)(const store::Array& array, const DecodeRequest& request);
  /// The array for a mask, which it shares. Throws InputError if the convention cannot hold the
  /// mask.
  MatrixSource (*encode)(const mask::Mask& mask, const std::string& path);
  unsigned cell_bits;  ///< bits for every cell; 0: grows with the runs only
  /// Whether programs of this convention may take a row without keys for one that reads all.
  bool empty_row_warning = false;
};

/// All conventions, sorted by name.
std::span<const Convention* const> conventions();

/// nullptr if there is none of this name.
const Convention* find_convention(std::string_view name);

struct ConventionRegistration {
  explicit ConventionRegistration(const Convention& convention);
};

}  // namespace masque::exchange
