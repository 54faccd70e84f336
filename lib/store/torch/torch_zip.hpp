// PyTorch's zip files (.bin, .pt, .pth since 1.6): FOLDER/data.pkl, and FOLDER/data/KEY for every
// storage.
#pragma once

#include "store/format.hpp"

namespace masque::store {

/// Whether `file`, whose first bytes are `first`, is a zip file that is to be read as one of
/// PyTorch: its first member is no array of NumPy. Throws InputError if it cannot be read.
bool is_torch_zip(const InputFile& file, Bytes first);

/// Reads the directory of `file` and the pickle, whose CRC-32 is checked; no storages. Rules: those
/// of zip (stored members only), of pickles, of torch_content, and "torch-member", "torch-script",
/// "torch-byteorder", "torch-version", "torch-storage", "pickle-rest". Throws InputError if it
/// cannot be read.
Checked<FileContent> read_torch_zip(const InputFile& file);

}  // namespace masque::store
