#include "store/zip/zip_writer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "store/zip/zip_layout.hpp"

namespace masque::store {

namespace {

constexpr std::uint16_t kNeededVersion = 45;  // of the specification: ZIP64
constexpr std::uint16_t kUnix = 3U << 8U;
constexpr std::uint16_t kDate = 0x21;  // 1 January 1980, the earliest
constexpr std::uint32_t kAttributes = 0600U << 16U;
constexpr std::uint64_t kLimit = 0x7FFF'FFFF;  // beyond it Python uses ZIP64

constexpr std::uint16_t kZero16 = 0;
constexpr std::uint32_t kZero32 = 0;

/// The fields that the directory and a local header share, from the flags to the CRC.
void put_shared(std::string& out, const ZipEntry& entry) {
  const auto flags = static_cast<std::uint16_t>(is_ascii(entry.name) ? 0 : zip::kFlagUtf8);
  append_number(out, flags, kZero16, kZero16, kDate, entry.crc);  // method: stored; time: midnight
}

std::uint32_t narrow(std::uint64_t number, std::uint64_t limit) {
  return static_cast<std::uint32_t>(number > limit ? zip::kSaturated : number);
}

std::uint16_t size16(std::string_view text) {
  MASQUE_CHECK(text.size() <= 0xFFFF);
  return static_cast<std::uint16_t>(text.size());
}

/// A ZIP64 field of these numbers; nothing of none.
std::string extra_field(const std::vector<std::uint64_t>& numbers) {
  std::string out;
  if (numbers.empty()) return out;
  append_number(out, zip::kExtra64, static_cast<std::uint16_t>(8 * numbers.size()));
  for (const std::uint64_t number : numbers) append_number(out, number);
  return out;
}

std::string directory_entry(const ZipEntry& entry) {
  std::vector<std::uint64_t> wide;
  if (entry.bytes > kLimit) wide = {entry.bytes, entry.bytes};
  if (entry.header_begin > kLimit) wide.push_back(entry.header_begin);
  const std::string extra = extra_field(wide);
  std::string out;
  append_number(out, zip::kEntry, static_cast<std::uint16_t>(kUnix | kNeededVersion),
                kNeededVersion);
  put_shared(out, entry);
  append_number(out, narrow(entry.bytes, kLimit), narrow(entry.bytes, kLimit), size16(entry.name),
                size16(extra), kZero16, kZero16, kZero16, kAttributes,
                narrow(entry.header_begin, kLimit));
  return out + entry.name + extra;
}

}  // namespace

std::string write_zip_local_header(const ZipEntry& entry) {
  const std::string extra = extra_field({entry.bytes, entry.bytes});
  const auto saturated = static_cast<std::uint32_t>(zip::kSaturated);
  std::string out;
  append_number(out, zip::kLocalHeader, kNeededVersion);
  put_shared(out, entry);
  append_number(out, saturated, saturated, size16(entry.name), size16(extra));
  return out + entry.name + extra;
}

std::string write_zip_directory(const std::vector<ZipEntry>& entries, std::uint64_t begin) {
  std::string out;
  for (const ZipEntry& entry : entries) out += directory_entry(entry);
  const std::uint64_t size = out.size();
  const std::uint64_t count = entries.size();
  if (count > zip::kSaturatedCount || begin > kLimit || size > kLimit) {
    append_number(out, zip::kEnd64, std::uint64_t{zip::kEnd64Bytes - 12}, kNeededVersion,
                  kNeededVersion, kZero32, kZero32, count, count, size, begin);
    append_number(out, zip::kLocator64, kZero32, begin + size, std::uint32_t{1});
  }
  const auto count16 = static_cast<std::uint16_t>(std::min(count, zip::kSaturatedCount));
  append_number(out, zip::kEnd, kZero16, kZero16, count16, count16, narrow(size, zip::kSaturated),
                narrow(begin, zip::kSaturated), kZero16);
  return out;
}

}  // namespace masque::store
