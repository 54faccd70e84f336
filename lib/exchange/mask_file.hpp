// Masks from and into files.
#pragma once

#include <string>

#include "exchange/mask_text.hpp"
#include "exchange/matrix_source.hpp"

namespace masque::exchange {

/// The mask in a file of any kind that read_matrix takes: 1 (or '#', or black) may read. Throws
/// InputError naming the first cell that is neither 0 nor 1.
mask::BitMatrix read_mask(const std::string& path);

struct WriteMaskOptions {
  bool force = false;           ///< write more than kMaxDenseCells
  std::string expression = {};  ///< kept in JSON
};

inline constexpr std::uint64_t kMaxDenseCells = std::uint64_t{1} << 31;

/// Throws InputError with the size that `lengths` would take at `bits` a cell if these are more
/// than kMaxDenseCells cells, unless `force`.
void check_dense_size(const std::string& path, mask::Lengths lengths, unsigned bits, bool force);

/// Writes a mask to a file of the kind that its name says: .npy .npz .safetensors (BOOL, 1 may
/// read), .pbm, .tsv (0 and 1), .txt ('#' and '.'), .json (runs of visible keys). The file is
/// replaced as a whole or not at all. Throws UsageError for another name.
void write_mask(const std::string& path, const mask::Mask& mask, const WriteMaskOptions& options);

/// Writes an array to .npy, .npz, .safetensors (as tensor "mask") or .tsv (one or two dimensions
/// after leading ones, `header` first if there is one).
void write_matrix(const std::string& path, const MatrixSource& source,
                  const std::string& header = {});

}  // namespace masque::exchange
