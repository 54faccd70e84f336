// Masks as text and as PBM: formats that need no library to read.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"

namespace masque::exchange {

/// Takes pieces of output in order.
using TextSink = std::function<void(std::string_view)>;

/// Every row as a line of '#' (visible) and '.'.
void print_mask_text(const mask::Mask& mask, const TextSink& sink);
/// The same from text. Throws InputError "path: line N: …".
mask::BitMatrix parse_mask_text(std::string_view text, const std::string& path);

/// A bitmap in the format PBM (P4): visible cells are black.
void print_mask_pbm(const mask::Mask& mask, const TextSink& sink);
/// A bitmap of kind P1 or P4, black cells visible. Throws InputError.
mask::BitMatrix parse_mask_pbm(std::string_view bytes, const std::string& path);

/// A JSON object: queries, keys, and for each query its runs of visible keys [[begin,end],…], ends
/// not included.
void print_mask_json(const mask::Mask& mask, const std::string& expression, const TextSink& sink);

/// The mask of such an object. Throws InputError.
mask::BitMatrix parse_mask_json(std::string_view text, const std::string& path);

/// Calls use(begin, end) for every run of visible keys of a query.
void for_each_run(const mask::Mask& mask, Index query,
                  const std::function<void(Index, Index)>& use);

}  // namespace masque::exchange
