// Snappy, as blocks of tables are packed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace masque::store {

/// The bytes that the Snappy stream `packed` (without frames) stands for; nothing if it is none:
/// cut off, a copy of what is not there yet, another length than announced, or one that so few
/// bytes cannot stand for (a copy of 3 bytes makes at most 64). Memory: the announced length, once
/// that is known to be possible.
std::optional<std::string> unpack_snappy(std::string_view packed);

}  // namespace masque::store
