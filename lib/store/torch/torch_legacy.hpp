// PyTorch's files before 1.6: five pickles, then the storages.
#pragma once

#include "store/format.hpp"

namespace masque::store {

/// Whether `file`, whose first bytes are `first`, starts as one: with the pickle of the magic
/// number.
bool is_torch_legacy(const InputFile& file, Bytes first);

/// Reads the pickles of `file`, which is_torch_legacy, and the lengths of the storages. Rules:
/// those of pickles, of torch_content, and "legacy-header", "legacy-storages". Memory: the pickles
/// and at most as much again. Throws InputError if it cannot be read.
Checked<FileContent> read_torch_legacy(const InputFile& file);

}  // namespace masque::store
