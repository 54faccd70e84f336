// Masks as people type them: files in an expression are read, and their cells stand in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mask/expression.hpp"

namespace masque::exchange {

/// `layers` with what each explicit(FILE) reads in its place: `matrix(…)`, which config.json can
/// hold. A file `[layers, n, n]` or `[layers, heads, n, n]` gives one mask for each layer and,
/// where they differ, for each head; it stands in an expression that is the whole list of layers,
/// or of heads. Throws UsageError for such a file in a longer list, InputError for a file that
/// cannot be read, whose masks are not square, or are as many as those of no other file of the
/// expression.
std::vector<mask::MaskLayer> read_files(const std::vector<mask::MaskLayer>& layers);

/// The same of the list in `text`, which may leave words to each text. Throws as read_files, and
/// UsageError for an expression that is none.
std::vector<mask::MaskLayer> read_mask_layers(std::string_view text);

/// The same in the language. A `text` that reads no file stays as it is.
std::string with_files_read(const std::string& text);

}  // namespace masque::exchange
