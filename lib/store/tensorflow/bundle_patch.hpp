// The index of a bundle whose tensors are written over where they are.
#pragma once

#include <span>
#include <string>

#include "store/tensorflow/bundle.hpp"

namespace masque::store {

/// The file PREFIX.index, which was `index`, after bytes of data files changed: `files`[i] is data
/// file i, as it will be. Entries of tensors that change get their new sums; every other byte of
/// every entry stays. The table is written anew, not compressed. Reads the old and the new bytes of
/// those tensors once. Throws InputError if the old ones are damaged: new sums would hide it.
std::string patched_bundle_index(const BundleIndex& index, std::span<const PatchedFile> files);

}  // namespace masque::store
