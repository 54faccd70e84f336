// Files of plain ids, 16 or 32 bits each and little-endian, as nanoGPT and llm.c keep them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace masque::records {

enum class BinaryLayout {
  kNanogpt,  ///< ids from the first byte on
  kLlmc,     ///< after a header: magic, version and number of ids
};

/// llm.c's header, as numbers of the file.
using LlmcHeader = std::array<std::int32_t, 256>;

/// The most ids that the header can count.
inline constexpr std::uint64_t kMostLlmcIds = std::numeric_limits<std::int32_t>::max();

/// The header of a file of `count` ids, at most kMostLlmcIds, of 2 bytes (magic and version of
/// GPT-2's files) or 4 (Llama 3's).
constexpr LlmcHeader llmc_header(int bytes, std::uint64_t count) {
  return bytes == 2 ? LlmcHeader{20240520, 1, static_cast<std::int32_t>(count)}
                    : LlmcHeader{20240801, 7, static_cast<std::int32_t>(count)};
}

}  // namespace masque::records
