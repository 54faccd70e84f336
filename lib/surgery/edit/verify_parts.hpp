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

/// One XXH3-128 over the texts of several `digests`, in their order.
std::string combined_digest(const std::vector<std::string>& digests);

/// Whether the files at the paths `a` and `b` have the same bytes, by XXH3-128. Throws InputError
/// if one cannot be read.
bool same_file(const std::string& a, const std::string& b);

/// Writes the bytes of a computed tensor from byte `offset`, a multiple of the size of its chunks,
/// to `out`. Thread-safe.
using ExpectedBytes = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// Compares the bytes of `tensor` of `after` with those of `expected`, in chunks of `chunk_bytes`,
/// on up to `threads` threads (≤ 0: all processors). Throws InputError naming it if a byte differs.
void check_computed_bytes(const store::Checkpoint& after, const store::TensorInfo& tensor,
                          const ExpectedBytes& expected, std::uint64_t chunk_bytes, int threads);

}  // namespace masque::surgery
