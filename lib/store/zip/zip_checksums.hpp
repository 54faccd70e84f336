// Zip files whose members are changed in place: their checksums follow.
#pragma once

#include <vector>

#include "store/format.hpp"
#include "store/zip/zip.hpp"

namespace masque::store {

/// The CRC-32 of every stored member of `file` that changes, where the directory, its local header
/// and its descriptor have it. Reads those members once, as they are and as they will be. Throws
/// InputError if a member that changes is damaged, if bytes of a packed member change, or if the
/// file is no valid zip file by `rules`.
std::vector<Patch> zip_checksums(const PatchedFile& file, const ZipRules& rules);

}  // namespace masque::store
