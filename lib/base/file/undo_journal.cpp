#include "base/file/undo_journal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/os.hpp"
#include "base/file/output_file.hpp"
#include "base/little_endian.hpp"
#include "base/thread/shortage.hpp"

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
  void renamed(const std::string& name) { name_ = &name; }
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

/// Whether the checksum and the length of a journal, not shorter than one may be, are right.
bool is_complete(const InputFile& file) {
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
  const std::string temporary = staging_name(name);
  const std::string full = join(path, name);
  if (exists(full)) throw system_error(full, "writing", EEXIST);
  const Descriptor fd(os::open_at(folder, temporary.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) throw system_error(full, "writing", errno);
  Unlinking unlinking(folder, temporary);
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
  UndoJournal journal{name, std::move(plan), InputFile::open_in(folder, temporary, full),
                      kPrefix + header.size()};
  // Its name says that it is complete and on the disk: what is wrong with it later is damage.
  if (os::rename_at(folder, temporary.c_str(), name.c_str()) != 0)
    throw system_error(full, "writing", errno);
  unlinking.renamed(name);
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
  const auto damaged = [&] {
    return InputError(full,
                      "is damaged and cannot undo the change in place that was interrupted: "
                      "take the files from a copy, then remove it");
  };
  if (file.size() < kPrefix + kTrailer) throw damaged();
  std::string prefix(kPrefix, '\0');
  file.read(0, std::as_writable_bytes(std::span(prefix)));
  Fields fields(prefix);
  if (fields.text(kMagic.size()) != kMagic || !is_complete(file)) throw damaged();
  if (const auto version = fields.number<std::uint32_t>(); version != kVersion) {
    throw InputError(full, fmt::format("has version {}, expected {}: it is another program's",
                                       version, kVersion));
  }
  const std::uint64_t size = fields.number<std::uint32_t>();
  if (size > file.size() - kPrefix - kTrailer) throw damaged();
  std::string header(size, '\0');
  file.read(kPrefix, std::as_writable_bytes(std::span(header)));
  auto plan = parse_header(header, file.size() - kPrefix - kTrailer - size);
  if (!plan) throw damaged();
  return UndoJournal{name, *std::move(plan), std::move(file), kPrefix + size};
}

namespace {

constexpr std::uint64_t kMostTextBytes = 1 << 30;  ///< of a file that is replaced as a whole

int write_quietly(int fd, std::uint64_t offset, Bytes bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = os::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0 ? ENOSPC : errno;
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

/// The saved bytes of one range back into a patched file.
int put_back(const UndoJournal& journal, const UndoRange& range, std::uint64_t from,
             int to) noexcept {
  std::array<std::byte, 1 << 13> buffer;  // on the stack: there may be no memory left
  for (std::uint64_t at = 0; at < range.size; at += buffer.size()) {
    const MutableBytes part =
        MutableBytes(buffer).first(std::min<std::uint64_t>(buffer.size(), range.size - at));
    if (const int error = read_quietly(journal.file.descriptor(), from + at, part)) return error;
    if (const int error = write_quietly(to, range.offset + at, part)) return error;
  }
  return 0;
}

/// The content of an entry; nothing if there is none. `error` ← what else went wrong, or 0.
std::optional<std::vector<std::byte>> content_of(int folder, const std::string& name, int& error) {
  error = 0;
  const Descriptor fd(
      os::open_at(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  if (!fd || os::stat_fd(fd.get(), info) != 0) {
    error = errno == ENOENT ? 0 : errno;
    return std::nullopt;
  }
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > kMostTextBytes) {
    error = EINVAL;
    return std::nullopt;
  }
  std::vector<std::byte> content(static_cast<std::size_t>(info.st_size));
  error = read_quietly(fd.get(), 0, content);
  return error == 0 ? std::optional(std::move(content)) : std::nullopt;
}

int restore_text(int folder, const UndoJournal& journal, const UndoRange& range,
                 std::uint64_t from) {
  std::vector<std::byte> old(range.size);
  if (const int error = read_quietly(journal.file.descriptor(), from, old)) return error;
  const std::string& name = journal.plan.files[range.file].name;
  int error = 0;
  const auto now = content_of(folder, name, error);
  if (error != 0 || (now && *now == old)) return error;
  return replace_quietly(folder, name, old);
}

/// Names in a folder that may be journals; just those of `expected` where it may not be listed.
std::vector<std::string> journal_names(int folder, const std::string& path,
                                       std::span<const std::string> expected) {
  std::vector<std::string> names;
  const int fd = os::open_at(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) {
    for (const std::string& name : expected) names.push_back(journal_name(name));
    return names;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (!stream) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    throw system_error(path, "reading", error);
  }
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (is_journal_name(entry->d_name)) names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) throw system_error(path, "reading", errno);
  std::ranges::sort(names);
  return names;
}

/// Whether a file begins or ends as journals do: one that was damaged in one place still does.
bool looks_like_journal(int folder, const std::string& path, const std::string& name) {
  struct stat info = {};
  if (os::stat_at(folder, name.c_str(), info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
    return false;
  const InputFile file = InputFile::open_in(folder, name, join(path, name));
  const auto is_at = [&](std::uint64_t offset, std::string_view wanted) {
    std::string found(wanted.size(), '\0');
    file.read(offset, std::as_writable_bytes(std::span(found)));
    return found == wanted;
  };
  return file.size() >= kMagic.size() &&
         (is_at(0, kMagic) || is_at(file.size() - kEnd.size(), kEnd));
}

int roll_all_back(int folder, const UndoJournal& journal, std::span<const int> descriptors);
int replace(int folder, const std::string& name, Bytes content);

}  // namespace

int roll_back(int folder, const UndoJournal& journal, std::span<const int> descriptors) noexcept {
  return errno_of([&] { return roll_all_back(folder, journal, descriptors); });
}

int replace_quietly(int folder, const std::string& name, Bytes content) noexcept {
  return errno_of([&] { return replace(folder, name, content); });
}

int read_quietly(int fd, std::uint64_t offset, MutableBytes out) noexcept {
  while (!out.empty()) {
    const ssize_t count = os::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0 ? EIO : errno;
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

namespace {

int replace(int folder, const std::string& name, Bytes content) {
  const std::string temporary = staging_name(name);
  const auto write = [&]() -> int {
    const Descriptor fd(
        os::open_at(folder, temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd || os::truncate(fd.get(), 0) != 0) return errno;
    if (const int error = write_quietly(fd.get(), 0, content)) return error;
    struct stat before = {};
    const bool there = os::stat_at(folder, name.c_str(), before, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT) return errno;
    if (os::chmod_fd(fd.get(), there ? before.st_mode & 07777U : new_file_mode()) != 0)
      return errno;
    // Only root may; anybody else's replacement is their own.
    if (there && (before.st_uid != ::geteuid() || before.st_gid != ::getegid()) &&
        ::fchown(fd.get(), before.st_uid, before.st_gid) != 0 && errno != EPERM)
      return errno;
    if (os::sync(fd.get()) != 0) return errno;
    return os::rename_at(folder, temporary.c_str(), name.c_str()) == 0 ? 0 : errno;
  };
  const int error = write();
  if (error != 0) os::unlink_at(folder, temporary.c_str());
  return error;
}

int roll_all_back(int folder, const UndoJournal& journal, std::span<const int> descriptors) {
  std::uint64_t from = journal.data_begin;
  bool names_change = false;
  for (const UndoRange& range : journal.plan.ranges) {
    const bool patched = journal.plan.files[range.file].kind == UndoKind::kPatched;
    const int error = patched ? put_back(journal, range, from, descriptors[range.file])
                              : restore_text(folder, journal, range, from);
    if (error != 0) return error;
    from += range.size;
  }
  for (std::size_t i = 0; i < journal.plan.files.size(); ++i) {
    const UndoFile& file = journal.plan.files[i];
    if (file.kind == UndoKind::kPatched && os::sync(descriptors[i]) != 0) return errno;
    if (file.kind == UndoKind::kPatched) continue;
    names_change = true;
    const std::string temporary = staging_name(file.name);  // if its replacement was cut short
    if (os::unlink_at(folder, temporary.c_str()) != 0 && errno != ENOENT) return errno;
    if (file.kind == UndoKind::kCreated && os::unlink_at(folder, file.name.c_str()) != 0 &&
        errno != ENOENT)
      return errno;
  }
  // Names before the journal goes: a disk may keep later changes of a folder and lose earlier ones.
  if (names_change && os::sync(folder) != 0) return errno;
  if (os::unlink_at(folder, journal.name.c_str()) != 0 && errno != ENOENT) return errno;
  return os::sync(folder) == 0 ? 0 : errno;
}

}  // namespace

void check_identity(int folder, const std::string& path, const UndoJournal& journal,
                    std::span<const int> descriptors) {
  const std::string where = join(path, journal.name);
  const auto refuse = [&](const std::string& name) {
    throw InputError(where, fmt::format("'{}' is not the file that this journal would restore: "
                                        "remove the journal if the file is correct",
                                        escape(name)));
  };
  for (std::size_t i = 0; i < journal.plan.files.size(); ++i) {
    const UndoFile& file = journal.plan.files[i];
    if (file.kind == UndoKind::kPatched) {
      // Not the device: after a loss of power it may have another number.
      struct stat info = {};
      if (os::stat_fd(descriptors[i], info) != 0)
        throw system_error(join(path, file.name), "reading its status", errno);
      if (info.st_ino != file.inode || static_cast<std::uint64_t>(info.st_size) != file.size)
        refuse(file.name);
      continue;
    }
    int error = 0;
    const auto now = content_of(folder, file.name, error);
    if (error != 0) throw system_error(join(path, file.name), "reading", error);
    if (!now && file.kind == UndoKind::kCreated) continue;
    if (now && xxh3_of(*now) == file.new_digest) continue;
    if (file.kind == UndoKind::kReplaced && now && now->size() == file.size) {
      std::uint64_t from = journal.data_begin;
      std::vector<std::byte> old(file.size);
      for (const UndoRange& range : journal.plan.ranges) {
        if (range.file == i) journal.file.read(from, MutableBytes(old).first(range.size));
        from += range.size;
      }
      if (*now == old) continue;
    }
    refuse(file.name);
  }
}

std::vector<UndoJournal> unfinished_changes(int folder, const std::string& path,
                                            std::span<const std::string> names) {
  std::vector<UndoJournal> found;
  const auto expected = [&](const std::string& journal) {
    const auto is_its = [&](const std::string& name) { return journal_name(name) == journal; };
    return std::ranges::any_of(names, is_its);
  };
  for (const std::string& name : journal_names(folder, path, names)) {
    if (!expected(name) && !looks_like_journal(folder, path, name)) continue;  // somebody else's
    auto journal = read_undo_journal(folder, path, name);
    const auto concerns = [&](const UndoFile& file) {
      return std::ranges::find(names, file.name) != names.end();
    };
    if (journal && std::ranges::any_of(journal->plan.files, concerns))
      found.push_back(*std::move(journal));
  }
  return found;
}

void refuse_unfinished(const std::string& folder, std::span<const std::string> names) {
  // Without leave to list it, too.
  const Descriptor opened(os::open_at(AT_FDCWD, folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened) refuse_folder(folder, errno);
  const auto found = unfinished_changes(opened.get(), folder, names);
  if (found.empty()) return;
  const std::string file = join(folder, found[0].plan.files[0].name);
  const Descriptor fd(os::open_at(AT_FDCWD, file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd && os::lock_exclusive(fd.get()) != 0 && errno == EWOULDBLOCK)
    throw InputError(file, "is being changed in place by another process");
  throw InputError(
      file, fmt::format("a change in place was interrupted: `embed-fix recover {}` undoes it",
                        escape(file)));
}

}  // namespace masque
