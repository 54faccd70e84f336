// Files of plain ids: uint16 or uint32, as nanoGPT and llm.c keep them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/string/name_table.hpp"
#include "base/types.hpp"

namespace masque::records {

/// Where ids stand in a file.
enum class BinaryLayout {
  kNanogpt,  ///< ids from the first byte on
  kLlmc,     ///< after llm.c's header
};
/// "nanogpt", "llmc". The table is static.
NameTable<BinaryLayout> binary_layout_names();

/// What llm.c puts in front of ids: 256 int32, of which the first three are 20240520 and 1 (GPT-2,
/// uint16) or 20240801 and 7 (Llama 3, uint32), and the number of ids.
inline constexpr std::size_t kLlmcHeaderBytes = 1024;
/// The header of a file of `count` ids of `bytes` bytes each, 2 or 4. Throws InputError about
/// `path` for more than it can state.
std::string llmc_header(int bytes, std::uint64_t count, const std::string& path);
/// The bytes of an id, 2 or 4, by the magic number and version in `header`; nothing if these are
/// not llm.c's.
std::optional<int> llmc_id_bytes(std::string_view header);
/// The number of ids that `header` states, 0 for a negative one. Throws InputError about `path` if
/// it is not the header of ids of `bytes` bytes.
std::uint64_t read_llmc_header(std::string_view header, int bytes, const std::string& path);

/// Appends `ids` to `out` in little-endian numbers of `bytes` bytes, 2 or 4; those of 2 fit them.
void append_binary(std::span<const TokenId> ids, int bytes, std::string& out);
/// Fills `out` with the numbers in `data`, as append_binary() writes them with `bytes` bytes each;
/// one of 4 bytes that is no id is negative. `data` has as many as `out`.
void load_binary(Bytes data, int bytes, std::span<TokenId> out);

}  // namespace masque::records
