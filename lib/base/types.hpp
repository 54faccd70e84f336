// The few types that everything uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace masque {

/// Positions, counts and dimensions. Signed, so that differences are safe.
using Index = std::int64_t;

/// Id of a token: a row of an embedding table.
using TokenId = std::int32_t;

/// A view of bytes that somebody else owns.
using Bytes = std::span<const std::byte>;
/// A view of bytes that somebody else owns, to be written to.
using MutableBytes = std::span<std::byte>;

}  // namespace masque
