// The checksums of a bundle's tensors, which its index has.
#pragma once

#include <optional>
#include <vector>

#include "base/file.hpp"
#include "store/tensorflow/bundle_entry.hpp"

namespace masque::store {

/// Compares the tensors of the data file `shard` with the CRC-32C of their `entries`: the first
/// that differs breaks the rule "bundle-crc". Of strings the sum is over their lengths as numbers,
/// too; VARIANT and RESOURCE are not compared. Reads each tensor once, 1 MiB at a time. Throws
/// InputError and Interrupted.
std::optional<Violation> check_bundle_sums(const InputFile& shard,
                                           const std::vector<BundleEntry>& entries);

}  // namespace masque::store
