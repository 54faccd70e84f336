#include "support/disk_model.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <stdexcept>

#include "support/temp_folder.hpp"

namespace masque::test {

namespace {

using Kind = DiskChange::Kind;

ino_t inode_of(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) throw std::runtime_error("no such file: " + path);
  return info.st_ino;
}

}  // namespace

DiskModel::DiskModel(const std::string& folder) : before_(nullptr) {
  for (const std::string& name : names_in(folder)) {
    const std::uint64_t number = next_number_++;
    numbers_[inode_of(folder + "/" + name)] = number;
    names_[name] = number;
    log_.add({.kind = Kind::kCreate, .file = number, .name = name});
    log_.add({.kind = Kind::kBytes, .file = number, .bytes = read_file(folder + "/" + name)});
  }
  log_.add({.kind = Kind::kAllOnDisk});
  before_ = os::set_fault_injector(this);
}

std::optional<os::Fault> DiskModel::before(os::Call, std::string_view, std::size_t) {
  return std::nullopt;
}

std::uint64_t DiskModel::number_of(int fd) const {
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !numbers_.contains(info.st_ino))
    throw std::runtime_error("a file that the model does not know");
  return numbers_.at(info.st_ino);
}

void DiskModel::after(const os::Event& event) {
  const std::string name(event.path);
  switch (event.call) {
    case os::Call::kOpen: {
      if (name == "." || name.find('/') != std::string::npos || names_.contains(name)) return;
      struct stat info = {};
      if (::fstatat(event.fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
      const std::uint64_t number = next_number_++;
      numbers_[info.st_ino] = number;
      names_[name] = number;
      log_.add({.kind = Kind::kCreate, .file = number, .name = name});
      return;
    }
    case os::Call::kPwrite: {
      const auto* data = reinterpret_cast<const char*>(event.data.data());
      log_.add({.kind = Kind::kBytes,
                .file = number_of(event.fd),
                .offset = static_cast<std::uint64_t>(event.offset),
                .bytes = std::string(data, event.data.size())});
      return;
    }
    case os::Call::kTruncate:
      log_.add({.kind = Kind::kCut,
                .file = number_of(event.fd),
                .offset = static_cast<std::uint64_t>(event.offset)});
      return;
    case os::Call::kSync: {
      struct stat info = {};
      ::fstat(event.fd, &info);
      if (S_ISDIR(info.st_mode)) {
        log_.add({.kind = Kind::kSyncFolder});
      } else {
        log_.add({.kind = Kind::kSyncFile, .file = number_of(event.fd)});
      }
      return;
    }
    case os::Call::kRename: {
      const std::string to(event.to);
      const std::uint64_t file = names_.at(name);
      names_.erase(name);
      names_[to] = file;
      log_.add({.kind = Kind::kRename, .file = file, .name = name, .to = to});
      return;
    }
    case os::Call::kUnlink:
      names_.erase(name);
      log_.add({.kind = Kind::kUnlink, .name = name});
      return;
    default: return;
  }
}

}  // namespace masque::test
