// Masks as text and as PBM: formats that need no library to read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"

namespace masque::exchange {

/// Most cells of a mask that is read from PBM or JSON.
inline constexpr std::uint64_t kMaxMaskCells = std::uint64_t{1} << 32;

/// Throws InputError with `path` if a mask of `queries` × `keys` has rows without cells or columns
/// without cells: they take no bytes, so that a file of a few bytes could have billions of them.
/// 0 × 0 is a mask.
void check_has_cells(std::uint64_t queries, std::uint64_t keys, const std::string& path);

/// Takes pieces of output in order. A piece is a view that ends with the call.
using TextSink = std::function<void(std::string_view)>;

/// Writes every row of `mask` to `sink` as a line of '#' (visible) and '.'. Throws Interrupted.
void print_mask_text(const mask::Mask& mask, const TextSink& sink);
/// The mask in `text` of such lines, the last line break optional. Throws InputError
/// "PATH: line N: …" with `path` for a line of another length or another character.
mask::BitMatrix parse_mask_text(std::string_view text, const std::string& path);

/// Writes `mask` to `sink` as a bitmap in the format PBM (P4): visible cells are black. Throws
/// Interrupted.
void print_mask_pbm(const mask::Mask& mask, const TextSink& sink);
/// The mask in the bitmap `bytes` of kind P1 or P4, black cells visible. Throws InputError with
/// `path` for other bytes, rows without cells, and above kMaxMaskCells cells; nothing is
/// allocated before all cells are known to be there.
mask::BitMatrix parse_mask_pbm(std::string_view bytes, const std::string& path);

/// Writes `mask` to `sink` as a JSON object: `expression` as "mask" unless it is empty, "queries",
/// "keys", and as "rows" for each query its runs of visible keys `[[begin,end],…]`, ends not
/// included. Throws Interrupted.
void print_mask_json(const mask::Mask& mask, const std::string& expression, const TextSink& sink);

/// The mask of such an object in `text`. Throws InputError with `path` for something else, rows
/// without cells, and above kMaxMaskCells cells, before memory is allocated for them.
mask::BitMatrix parse_mask_json(std::string_view text, const std::string& path);

/// Calls `use`(begin, end) for every run of visible keys of row `query` of `mask`, in rising order,
/// `end` not included.
void for_each_run(const mask::Mask& mask, Index query,
                  const std::function<void(Index, Index)>& use);

}  // namespace masque::exchange
