// Masks from and into files.
#pragma once

#include <optional>
#include <string>

#include "exchange/mask_text.hpp"
#include "exchange/matrix_source.hpp"

namespace masque::exchange {

/// The mask in the file `path`, of any kind that read_matrix takes: 1 (or '#', or black) may read.
/// Throws InputError as read_matrix, and one naming the first cell that is neither 0 nor 1; also
/// for other lengths than `expected`, if given: before the cells are read where a header has them.
mask::BitMatrix read_mask(const std::string& path, std::optional<mask::Lengths> expected = {});

/// How write_mask writes.
struct WriteMaskOptions {
  bool force = false;           ///< write more than kMaxDenseCells
  std::string expression = {};  ///< of the mask; kept in JSON as "mask", empty: left out
};

/// Most cells that are written without `force`.
inline constexpr std::uint64_t kMaxDenseCells = std::uint64_t{1} << 31;

/// Throws InputError with the size that `lengths` would take at `bits` a cell if these are more
/// than kMaxDenseCells cells, unless `force`. `path` is for the message.
void check_dense_size(const std::string& path, mask::Lengths lengths, unsigned bits, bool force);

/// Writes `mask` to the file `path` of the kind that its name says: .npy .npz .safetensors (BOOL, 1
/// may read), .pbm, .tsv (0 and 1), .txt ('#' and '.'), .json (runs of visible keys). The file is
/// replaced as a whole or not at all. Throws UsageError for another name; InputError for more than
/// kMaxDenseCells cells unless `options` have `force` (JSON has no limit), and for what writing
/// meets.
void write_mask(const std::string& path, const mask::Mask& mask, const WriteMaskOptions& options);

/// Writes the array of `source` to the file `path`: .npy, .npz (as array "mask", whole in memory),
/// .safetensors (as tensor "mask") or .tsv (at most two dimensions after leading ones; the line
/// `header` first unless it is empty). The file is replaced as a whole or not at all. Throws
/// UsageError for another name or more dimensions in a .tsv, InputError for what writing meets.
void write_matrix(const std::string& path, const MatrixSource& source,
                  const std::string& header = {});

}  // namespace masque::exchange
