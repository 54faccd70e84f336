#include "base/little_endian.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/make_zip.hpp"

namespace masque::test {

namespace {

/// Numbers and texts of a file, wherever they are said to be; nothing beyond its end.
class Cursor {
 public:
  Cursor(std::string_view file, std::size_t at) : file_(file), at_(at) {}
  template <class T>
  T number() {
    const std::string_view bytes = text(sizeof(T));
    return bytes.size() == sizeof(T) ? load_number<T>(bytes.data()) : T{0};
  }
  std::string_view text(std::size_t size) {
    if (at_ > file_.size() || size > file_.size() - at_) {
      good_ = false;
      return {};
    }
    at_ += size;
    return file_.substr(at_ - size, size);
  }
  bool good() const { return good_; }

 private:
  std::string_view file_;
  std::size_t at_;
  bool good_ = true;
};

/// The member of an entry of the directory, with its data.
std::optional<ZipPart> part_of(std::string_view file, Cursor& directory) {
  ZipPart part;
  directory.text(4);  // versions
  part.flags = directory.number<std::uint16_t>();
  part.method = directory.number<std::uint16_t>();
  directory.text(4);  // time
  const auto crc = directory.number<std::uint32_t>();
  const auto packed = directory.number<std::uint32_t>();
  const auto unpacked = directory.number<std::uint32_t>();
  const auto name = directory.number<std::uint16_t>();
  const auto extra = directory.number<std::uint16_t>();
  const auto comment = directory.number<std::uint16_t>();
  directory.text(8);  // attributes
  const auto at = directory.number<std::uint32_t>();
  part.name = directory.text(name);
  part.extra = directory.text(extra);
  directory.text(comment);
  Cursor local(file, std::size_t{at} + 26);
  const auto local_name = local.number<std::uint16_t>();
  const auto local_extra = local.number<std::uint16_t>();
  local.text(local_name);
  part.local_extra = local.text(local_extra);
  part.data = local.text(packed);
  part.flags &= ~8U;  // sizes and sums stand in the headers
  if (part.method != 0) {
    part.crc = crc;
    part.bytes = unpacked;
  }
  return directory.good() && local.good() ? std::optional(part) : std::nullopt;
}

std::vector<ZipPart> parts_of(std::string_view file) {
  const std::size_t end = file.rfind("PK\x05\x06");
  if (end == std::string_view::npos) return {};
  Cursor record(file, end + 16);
  Cursor directory(file, record.number<std::uint32_t>());
  std::vector<ZipPart> parts;
  while (directory.text(4) == "PK\x01\x02") {
    auto part = part_of(file, directory);
    if (!part) return {};
    parts.push_back(std::move(*part));
  }
  return parts;
}

void change(std::vector<ZipPart>& parts, Choices& choices) {
  const std::size_t at = choices.below(parts.size());
  ZipPart& part = parts[at];
  switch (choices.below(8)) {
    case 0: parts.push_back(part); break;
    case 1: parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 2: part.name = mutate_bytes(part.name); break;
    case 3: part.extra = mutate_bytes(part.extra); break;
    case 4: std::swap(part.data, parts[choices.below(parts.size())].data); break;
    case 5: part.flags ^= 1U << choices.below(12); break;
    default: part.data = mutate_bytes(part.data);
  }
}

}  // namespace

std::string mutate_zip(std::string_view file, Choices& choices) {
  std::vector<ZipPart> parts = parts_of(file);
  if (parts.empty()) return {};
  change(parts, choices);
  const ZipFile zip = make_zip(parts);
  return choices.one_in(4) ? with_zip64(zip, parts.size()) : zip.text;
}

}  // namespace masque::test
