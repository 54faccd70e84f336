// PyTorch's files before 1.6: five pickles, then the storages.
#pragma once

#include "store/format.hpp"

namespace masque::store {

/// Whether a file starts as one.
bool is_torch_legacy(const InputFile& file, Bytes first);

/// Reads the pickles and the lengths of the storages. Rules: those of pickles, of torch_content,
/// and "legacy-header", "legacy-storages". Memory: the pickles and at most as much again.
Checked<FileContent> read_torch_legacy(const InputFile& file);

}  // namespace masque::store
