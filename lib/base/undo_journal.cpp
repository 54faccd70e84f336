#include "base/undo_journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/little_endian.hpp"
#include "base/os.hpp"

namespace masque {

namespace {

constexpr std::string_view kMagic = "masqundo";
constexpr std::string_view kEnd = "undo-end";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kDigest = 32;
constexpr std::uint64_t kPrefix = 16;
constexpr std::uint64_t kTrailer = 8 + kDigest + 8;
constexpr std::uint64_t kBuffer = 1 << 20;

/// Numbers and names from a header. A value beyond its end makes it bad, and everything 0.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}
  template <class T>
  T number() {
    const std::string_view bytes = text(sizeof(T));
    return good_ ? load_number<T>(bytes.data()) : T{0};
  }
  std::string_view text(std::uint64_t size) {
    good_ = good_ && size <= rest_.size();
    if (!good_) return {};
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  bool done() const { return good_ && rest_.empty(); }
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::string header_of(const UndoPlan& plan) {
  std::string out;
  append_number(out, static_cast<std::uint32_t>(plan.files.size()));
  for (const UndoFile& file : plan.files) {
    append_number(out, static_cast<std::uint8_t>(file.kind));
    append_number(out, file.inode);
    append_number(out, file.size);
    append_number(out, static_cast<std::uint32_t>(file.name.size()));
    out += file.name;
    out += file.new_digest.empty() ? std::string(kDigest, '0') : file.new_digest;
  }
  append_number(out, static_cast<std::uint64_t>(plan.ranges.size()));
  for (const UndoRange& range : plan.ranges) {
    append_number(out, range.file);
    append_number(out, range.offset);
    append_number(out, range.size);
  }
  return out;
}

bool is_entry_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

/// Nothing unless every field is what we write. `data` is how many old bytes there are.
std::optional<UndoPlan> parse_header(std::string_view text, std::uint64_t data) {
  Fields fields(text);
  UndoPlan plan;
  for (auto files = fields.number<std::uint32_t>(); files > 0 && fields.good(); --files) {
    UndoFile& file = plan.files.emplace_back();
    const auto kind = fields.number<std::uint8_t>();
    if (kind > static_cast<std::uint8_t>(UndoKind::kCreated)) return std::nullopt;
    file.kind = static_cast<UndoKind>(kind);
    file.inode = fields.number<std::uint64_t>();
    file.size = fields.number<std::uint64_t>();
    file.name = fields.text(fields.number<std::uint32_t>());
    file.new_digest = fields.text(kDigest);
    if (!is_entry_name(file.name)) return std::nullopt;
  }
  for (auto ranges = fields.number<std::uint64_t>(); ranges > 0 && fields.good(); --ranges) {
    UndoRange& range = plan.ranges.emplace_back();
    range.file = fields.number<std::uint32_t>();
    range.offset = fields.number<std::uint64_t>();
    range.size = fields.number<std::uint64_t>();
    if (range.file >= plan.files.size() || range.size > data) return std::nullopt;
    const std::uint64_t size = plan.files[range.file].size;
    if (range.offset > size || range.size > size - range.offset) return std::nullopt;
    data -= range.size;
  }
  return fields.done() && data == 0 && !plan.files.empty() ? std::optional(plan) : std::nullopt;
}

/// Writes a file from its first byte on, and hashes it.
class HashedWriter {
 public:
  HashedWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  void write(Bytes bytes) {
    write_at(fd_, size_, bytes, path_);
    // The disk starts at once instead of at the sync: only a hint, so its result does not matter.
    static_cast<void>(::sync_file_range(fd_, static_cast<off_t>(size_),
                                        static_cast<off_t>(bytes.size()), SYNC_FILE_RANGE_WRITE));
    hasher_->add(bytes);
    size_ += bytes.size();
  }
  void finish() {
    std::string trailer;
    append_number(trailer, size_ + kTrailer);
    hasher_->add(as_bytes(trailer));
    trailer += hasher_->digest();
    trailer += kEnd;
    write_at(fd_, size_, as_bytes(trailer), path_);
  }

 private:
  int fd_;
  std::string path_;
  std::uint64_t size_ = 0;
  std::unique_ptr<Hasher> hasher_ = make_xxh3();
};

/// Removes a file again unless it was kept.
class Unlinking {
 public:
  Unlinking(int folder, const std::string& name) : folder_(folder), name_(&name) {}
  Unlinking(const Unlinking&) = delete;
  Unlinking& operator=(const Unlinking&) = delete;
  ~Unlinking() {
    if (!kept_) os::unlink_at(folder_, name_->c_str());
  }
  void keep() { kept_ = true; }

 private:
  int folder_;
  const std::string* name_;
  bool kept_ = false;
};

bool is_complete(const InputFile& file) {
  if (file.size() < kPrefix + kTrailer) return false;
  std::string trailer(kTrailer, '\0');
  const std::uint64_t end = file.size() - kTrailer;
  file.read(end, std::as_writable_bytes(std::span(trailer)));
  Fields fields(trailer);
  const auto total = fields.number<std::uint64_t>();
  const std::string_view digest = fields.text(kDigest);
  if (total != file.size() || fields.text(kEnd.size()) != kEnd) return false;
  const auto hasher = make_xxh3();
  std::vector<std::byte> buffer(kBuffer);
  for (std::uint64_t at = 0; at < end + 8; at += kBuffer) {
    const MutableBytes part = MutableBytes(buffer).first(std::min(kBuffer, end + 8 - at));
    file.read(at, part);
    hasher->add(part);
  }
  return hasher->digest() == digest;
}

}  // namespace

std::string journal_name(const std::string& name) {
  std::string plain = fmt::format(".{}.undo", name);
  if (plain.size() <= 255) return plain;
  return fmt::format(".{}.undo", xxh3_of(as_bytes(name)));
}

bool is_journal_name(std::string_view name) {
  return name.size() > 6 && name.starts_with('.') && name.ends_with(".undo");
}

UndoJournal write_undo_journal(int folder, const std::string& path, UndoPlan plan,
                               const OldBytes& old) {
  const std::string name = journal_name(plan.files.at(0).name);
  const std::string full = join(path, name);
  const Descriptor fd(
      os::open_at(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) throw system_error(full, "writing", errno);
  Unlinking unlinking(folder, name);
  const std::string header = header_of(plan);
  std::string prefix(kMagic);
  append_number(prefix, kVersion);
  append_number(prefix, static_cast<std::uint32_t>(header.size()));
  MASQUE_CHECK(header.size() <= UINT32_MAX);
  HashedWriter writer(fd.get(), full);
  writer.write(as_bytes(prefix + header));
  std::vector<std::byte> buffer(kBuffer);
  for (const UndoRange& range : plan.ranges) {
    for (std::uint64_t at = 0; at < range.size; at += kBuffer) {
      const MutableBytes part = MutableBytes(buffer).first(std::min(kBuffer, range.size - at));
      old(range, at, part);
      writer.write(part);
    }
  }
  writer.finish();
  if (os::sync(fd.get()) != 0) throw system_error(full, "writing to disk", errno);
  UndoJournal journal{name, std::move(plan), InputFile::open_in(folder, name, full),
                      kPrefix + header.size()};
  if (os::sync(folder) != 0) throw system_error(path, "writing its folder to disk", errno);
  unlinking.keep();
  return journal;
}

std::optional<UndoJournal> read_undo_journal(int folder, const std::string& path,
                                             const std::string& name) {
  struct stat info = {};
  const std::string full = join(path, name);
  if (os::stat_at(folder, name.c_str(), info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    throw system_error(full, "reading its status", errno);
  }
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  InputFile file = InputFile::open_in(folder, name, full);
  if (file.size() < kPrefix) return std::nullopt;
  std::string prefix(kPrefix, '\0');
  file.read(0, std::as_writable_bytes(std::span(prefix)));
  Fields fields(prefix);
  if (fields.text(kMagic.size()) != kMagic || !is_complete(file)) return std::nullopt;
  if (const auto version = fields.number<std::uint32_t>(); version != kVersion) {
    throw InputError(full, fmt::format("has version {}, expected {}: it is another program's",
                                       version, kVersion));
  }
  const std::uint64_t size = fields.number<std::uint32_t>();
  if (size > file.size() - kPrefix - kTrailer) return std::nullopt;
  std::string header(size, '\0');
  file.read(kPrefix, std::as_writable_bytes(std::span(header)));
  auto plan = parse_header(header, file.size() - kPrefix - kTrailer - size);
  if (!plan) return std::nullopt;
  return UndoJournal{name, *std::move(plan), std::move(file), kPrefix + size};
}

}  // namespace masque
