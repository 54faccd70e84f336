#include "store/torch/torch_records.hpp"

#include <algorithm>

#include "store/zip/zip_layout.hpp"

namespace masque::store {

namespace {

using zip::kSaturated;

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint16_t kZero16 = 0;
constexpr std::uint32_t kZero32 = 0;
constexpr std::uint16_t kPaddingId = 'F' | 'B' << 8;
constexpr std::uint16_t kMadeBy = 0x031E;    // of miniz
constexpr std::uint16_t kZip64Version = 45;  // of the specification: ZIP64

/// Flags, method (stored), time and date.
void put_start(std::string& out, const TorchRecord& record) {
  const unsigned flags = zip::kFlagUtf8 | (record.bytes > 0 ? zip::kFlagDescriptor : 0);
  append_number(out, kZero16, static_cast<std::uint16_t>(flags), kZero16, kZero16, kZero16);
}

std::uint32_t narrow(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min(number, kSaturated));
}

std::uint16_t size16(std::string_view text) { return static_cast<std::uint16_t>(text.size()); }

/// The numbers that their own fields have no room for.
std::string wide_numbers(const TorchRecord& record) {
  std::string numbers;
  if (record.bytes >= kSaturated) append_number(numbers, record.bytes, record.bytes);
  if (record.header_begin >= kSaturated) append_number(numbers, record.header_begin);
  std::string out;
  if (!numbers.empty()) append_number(out, zip::kExtra64, size16(numbers));
  return out + numbers;
}

}  // namespace

std::string write_torch_local_header(const TorchRecord& record) {
  std::string extra = wide_numbers(record);
  const std::uint64_t data = record.header_begin + zip::kLocalHeaderBytes + record.name.size() +
                             extra.size() + 2 * sizeof(std::uint16_t);
  const std::string padding(kAlignment - data % kAlignment, 'Z');
  append_number(extra, kPaddingId, size16(padding));
  extra += padding;
  std::string out;
  append_number(out, zip::kLocalHeader);
  put_start(out, record);
  append_number(out, kZero32, kZero32, kZero32, size16(record.name), size16(extra));
  return out + record.name + extra;
}

std::string write_torch_descriptor(const TorchRecord& record) {
  std::string out;
  if (record.bytes == 0) return out;
  append_number(out, zip::kDescriptor, record.crc);
  if (wide_numbers(record).empty()) {
    append_number(out, narrow(record.bytes), narrow(record.bytes));
  } else {
    append_number(out, record.bytes, record.bytes);
  }
  return out;
}

std::string write_torch_directory(const std::vector<TorchRecord>& records, std::uint64_t begin) {
  std::string out;
  for (const TorchRecord& record : records) {
    const std::string extra = wide_numbers(record);
    append_number(out, zip::kEntry, kZero16);
    put_start(out, record);
    append_number(out, record.crc, narrow(record.bytes), narrow(record.bytes), size16(record.name),
                  size16(extra), kZero16, kZero16, kZero16, kZero32, narrow(record.header_begin));
    out += record.name;
    out += extra;
  }
  const std::uint64_t size = out.size();
  const std::uint64_t count = records.size();
  append_number(out, zip::kEnd64, std::uint64_t{zip::kEnd64Bytes - 12}, kMadeBy, kZip64Version,
                kZero32, kZero32, count, count, size, begin);
  append_number(out, zip::kLocator64, kZero32, begin + size, std::uint32_t{1});
  const auto count16 = static_cast<std::uint16_t>(std::min(count, zip::kSaturatedCount));
  append_number(out, zip::kEnd, kZero16, kZero16, count16, count16, narrow(size), narrow(begin),
                kZero16);
  return out;
}

}  // namespace masque::store
