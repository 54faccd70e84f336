#include "records/binary_layout.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/little_endian.hpp"

namespace masque::records {

namespace {

using Header = std::array<std::int32_t, kLlmcHeaderBytes / sizeof(std::int32_t)>;

/// Magic number and version.
std::pair<std::int32_t, std::int32_t> llmc_magic(int bytes) {
  return bytes == 2 ? std::pair{20240520, 1} : std::pair{20240801, 7};
}

}  // namespace

NameTable<BinaryLayout> binary_layout_names() {
  static constexpr std::array<std::pair<std::string_view, BinaryLayout>, 2> kNames{
      {{"nanogpt", BinaryLayout::kNanogpt}, {"llmc", BinaryLayout::kLlmc}}};
  return kNames;
}

std::string llmc_header(int bytes, std::uint64_t count, const std::string& path) {
  if (count > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) {
    throw InputError(path, fmt::format("{} ids, expected fewer than 2^31 (llm.c's header)", count));
  }
  Header header{};
  std::tie(header[0], header[1]) = llmc_magic(bytes);
  header[2] = static_cast<std::int32_t>(count);
  std::string text(kLlmcHeaderBytes, '\0');
  std::memcpy(text.data(), header.data(), kLlmcHeaderBytes);
  return text;
}

std::optional<int> llmc_id_bytes(std::string_view header) {
  if (header.size() < kLlmcHeaderBytes) return std::nullopt;
  std::array<std::int32_t, 2> begin{};
  std::memcpy(begin.data(), header.data(), sizeof begin);
  for (const int bytes : {2, 4}) {
    if (llmc_magic(bytes) == std::pair{begin[0], begin[1]}) return bytes;
  }
  return std::nullopt;
}

std::uint64_t read_llmc_header(std::string_view header, int bytes, const std::string& path) {
  Header numbers{};
  std::memcpy(numbers.data(), header.data(), std::min(header.size(), kLlmcHeaderBytes));
  const auto [magic, version] = llmc_magic(bytes);
  if (header.size() != kLlmcHeaderBytes || numbers[0] != magic || numbers[1] != version) {
    throw InputError(
        path, fmt::format(
                  "no header of llm.c for ids of {} bytes, expected magic number {} and version {}",
                  bytes, magic, version));
  }
  return static_cast<std::uint64_t>(std::max(numbers[2], 0));
}

void append_binary(std::span<const TokenId> ids, int bytes, std::string& out) {
  const auto width = static_cast<std::size_t>(bytes);
  const std::size_t before = out.size();
  out.resize(before + ids.size() * width);
  char* at = out.data() + before;
  if (width == sizeof(TokenId)) {
    if (!ids.empty()) std::memcpy(at, ids.data(), ids.size_bytes());
    return;
  }
  for (const TokenId id : ids) {
    const auto value = static_cast<std::uint16_t>(id);
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
}

void load_binary(Bytes data, int bytes, std::span<TokenId> out) {
  MASQUE_CHECK(data.size() == out.size() * static_cast<std::size_t>(bytes));
  if (bytes == sizeof(TokenId)) {
    if (!out.empty()) std::memcpy(out.data(), data.data(), data.size());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = load_number<std::uint16_t>(data.data() + i * sizeof(std::uint16_t));
}

}  // namespace masque::records
