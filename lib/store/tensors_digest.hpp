// One digest over all tensors of a file, before it is written and when it is read again.
#pragma once

#include <string>

#include "store/checkpoint.hpp"
#include "store/weights_writer.hpp"

namespace masque::store {

/// Fills `out` with the bytes of `source` from byte `offset` on: of a computed one a multiple of
/// its chunk_bytes. Throws what the source throws.
void read_source(const Source& source, std::uint64_t offset, MutableBytes out);

/// Returns one XXH3 over name, dtype, shape and bytes of all tensors of `weights`, in the order of
/// their names. Computes what is computed, on all processors. Throws what a source throws, and
/// Interrupted.
std::string tensors_digest(const OutputWeights& weights);
/// Returns the same of the tensors of `checkpoint`: equal for what was written as `weights`. Throws
/// InputError if something cannot be read, and Interrupted.
std::string tensors_digest(const Checkpoint& checkpoint);

}  // namespace masque::store
