// What both ways of reading an output back share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"

namespace masque::surgery {

/// Throws InputError: `what` is not as it must be in an output that was read back.
[[noreturn]] void verify_failed(const std::string& what);

/// One XXH3-128 over several digests, in their order.
std::string combined_digest(const std::vector<std::string>& digests);

/// Whether two files have the same bytes, by XXH3-128. Throws InputError if one cannot be read.
bool same_file(const std::string& a, const std::string& b);

/// The bytes of a computed tensor from an offset that is a multiple of the chunks. Thread-safe.
using ExpectedBytes = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// Compares a tensor of `after` chunk by chunk with what was computed. Throws InputError naming it
/// if a byte differs.
void check_computed_bytes(const store::Checkpoint& after, const store::TensorInfo& tensor,
                          const ExpectedBytes& expected, std::uint64_t chunk_bytes, int threads);

}  // namespace masque::surgery
