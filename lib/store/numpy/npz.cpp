#include "store/numpy/npz.hpp"

#include <array>

#include "store/zip/zip.hpp"

namespace masque::store {

namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

Checked<std::vector<ZipMember>> read_npz_directory(const InputFile& file) {
  auto checked = read_zip_directory(file, kNpzRules);
  if (const auto* members = std::get_if<std::vector<ZipMember>>(&checked)) {
    for (const ZipMember& member : *members) {
      if (member.name.size() > kSuffix.size() && member.name.ends_with(kSuffix)) continue;
      return Violation{"npz-member", "a zip file with other members, expected NAME.npy",
                       member.name, member.header_begin};
    }
  }
  return checked;
}

std::string array_name(const ZipMember& member) {
  return member.name.substr(0, member.name.size() - kSuffix.size());
}

bool looks_like_npz(const InputFile& file, Bytes first) {
  if (!is_zip(first)) return false;
  if (zip::get<std::uint32_t>(first, 0) == zip::kEnd) return true;
  if (first.size() < zip::kLocalHeaderBytes) return false;
  const std::uint64_t length = zip::get<std::uint16_t>(first, 26);
  const std::uint64_t end = zip::kLocalHeaderBytes + length;
  if (length < kSuffix.size() || end > file.size()) return false;
  std::string suffix(kSuffix.size(), '\0');
  file.read(end - kSuffix.size(), std::as_writable_bytes(std::span(suffix)));
  return suffix == kSuffix;
}

std::optional<Violation> check_npz_rest(const NpyHeader& header, std::uint64_t size) {
  if (header.data_begin + header.data_bytes >= size) return std::nullopt;
  return Violation{"npz-rest", header.notes.back() + ", expected none in an npz", "",
                   header.data_begin + header.data_bytes};
}

Violation in_member(Violation violation, const ZipMember& member) {
  const bool in_npy = violation.tensor.empty();
  const bool stored = member.method == ZipMethod::kStored;
  if (in_npy) violation.offset = member.data_begin + (stored ? violation.offset : 0);
  violation.tensor = member.name;
  return violation;
}

}  // namespace masque::store
