#include "support/disk_model.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "support/temp_folder.hpp"

namespace masque::test {

namespace {

constexpr std::uint64_t kBlock = 512;

struct stat stat_of(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) throw std::runtime_error("no such file: " + path);
  return info;
}

}  // namespace

DiskModel::DiskModel(const std::string& folder) : before_(nullptr), folder_(folder) {
  const struct stat info = stat_of(folder);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  for (const std::string& name : names_in(folder)) {
    const std::size_t number = next_number_++;
    numbers_[stat_of(folder + "/" + name).st_ino] = number;
    start_.names[name] = number;
    start_.contents[number] = read_file(folder + "/" + name);
    sizes_[number] = start_.contents[number].size();
  }
  names_ = start_.names;
  before_ = os::set_fault_injector(this);
}

std::optional<os::Fault> DiskModel::before(os::Call, std::string_view, std::size_t) {
  return std::nullopt;
}

std::size_t DiskModel::number_of(int fd) const {
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !numbers_.contains(info.st_ino))
    throw std::runtime_error("a file that the model does not know");
  return numbers_.at(info.st_ino);
}

void DiskModel::write(std::size_t file, const os::Event& event) {
  const auto offset = static_cast<std::uint64_t>(event.offset);
  std::vector<Change> changes;
  if (offset + event.data.size() > sizes_[file]) {
    sizes_[file] = offset + event.data.size();
    changes.push_back({.kind = Kind::kSize, .file = file, .offset = sizes_[file]});
  }
  const std::string_view data(reinterpret_cast<const char*>(event.data.data()), event.data.size());
  for (std::uint64_t at = 0; at < data.size();) {
    const std::uint64_t size = std::min(kBlock - (offset + at) % kBlock, data.size() - at);
    changes.push_back({.kind = Kind::kBytes,
                       .file = file,
                       .offset = offset + at,
                       .bytes = std::string(data.substr(at, size))});
    at += size;
  }
  log_.push_back(std::move(changes));
}

void DiskModel::after(const os::Event& event) {
  const std::string name(event.path);
  switch (event.call) {
    case os::Call::kOpen: {
      if (name == "." || name.find('/') != std::string::npos || names_.contains(name)) return;
      struct stat info = {};
      if (::fstatat(event.fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
      const std::size_t number = next_number_++;
      numbers_[info.st_ino] = number;
      names_[name] = number;
      sizes_[number] = 0;
      log_.push_back({{.kind = Kind::kCreate, .file = number, .name = name}});
      return;
    }
    case os::Call::kPwrite: write(number_of(event.fd), event); return;
    case os::Call::kTruncate: {
      const std::size_t file = number_of(event.fd);
      sizes_[file] = static_cast<std::uint64_t>(event.offset);
      log_.push_back({{.kind = Kind::kCut, .file = file, .offset = sizes_[file]}});
      return;
    }
    case os::Call::kSync: {
      struct stat info = {};
      ::fstat(event.fd, &info);
      if (S_ISDIR(info.st_mode)) {
        log_.push_back({{.kind = Kind::kSyncFolder}});
      } else {
        log_.push_back({{.kind = Kind::kSyncFile, .file = number_of(event.fd)}});
      }
      return;
    }
    case os::Call::kRename: {
      const std::string to(event.to);
      const std::size_t file = names_.at(name);
      names_.erase(name);
      names_[to] = file;
      log_.push_back({{.kind = Kind::kRename, .file = file, .name = name, .to = to}});
      return;
    }
    case os::Call::kUnlink:
      names_.erase(name);
      log_.push_back({{.kind = Kind::kUnlink, .name = name}});
      return;
    default: return;
  }
}

void DiskModel::apply(const Change& change, Disk& disk) {
  std::string& content = disk.contents[change.file];
  switch (change.kind) {
    case Kind::kCreate: disk.names[change.name] = change.file; return;
    case Kind::kBytes:
      if (content.size() < change.offset + change.bytes.size())
        content.resize(change.offset + change.bytes.size(), '\0');
      content.replace(change.offset, change.bytes.size(), change.bytes);
      return;
    case Kind::kSize:
      if (content.size() < change.offset) content.resize(change.offset, '\0');
      return;
    case Kind::kCut: content.resize(change.offset, '\0'); return;
    case Kind::kRename: {
      const auto from = disk.names.find(change.name);
      if (from != disk.names.end() && from->second == change.file) disk.names.erase(from);
      disk.names[change.to] = change.file;
      return;
    }
    case Kind::kUnlink: disk.names.erase(change.name); return;
    case Kind::kSyncFile:
    case Kind::kSyncFolder: return;
  }
}

void DiskModel::crashes(std::size_t count, int samples, std::uint64_t seed,
                        const std::function<void(const DiskState&)>& see) const {
  // What is durable, and what is not, in order.
  Disk durable = start_;
  std::vector<Change> loose;
  const auto settle = [&](const auto& belongs) {
    std::vector<Change> rest;
    for (const Change& change : loose) {
      if (belongs(change)) {
        apply(change, durable);
      } else {
        rest.push_back(change);
      }
    }
    loose = std::move(rest);
  };
  const auto names = [](const Change& c) {
    return c.kind == Kind::kCreate || c.kind == Kind::kRename || c.kind == Kind::kUnlink;
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (const Change& change : log_[i]) {
      if (change.kind == Kind::kSyncFolder) {
        settle(names);
      } else if (change.kind == Kind::kSyncFile) {
        settle([&](const Change& c) { return !names(c) && c.file == change.file; });
      } else {
        loose.push_back(change);
      }
    }
  }
  const auto show = [&](const std::function<bool(std::size_t)>& survives) {
    Disk disk = durable;
    for (std::size_t i = 0; i < loose.size(); ++i) {
      if (survives(i)) apply(loose[i], disk);
    }
    DiskState state;
    for (const auto& [name, number] : disk.names) state[name] = disk.contents[number];
    see(state);
  };
  if (loose.size() <= 8) {
    for (std::uint64_t choice = 0; choice < (std::uint64_t{1} << loose.size()); ++choice)
      show([&](std::size_t i) { return (choice >> i & 1U) != 0; });
    return;
  }
  show([](std::size_t) { return false; });
  show([](std::size_t) { return true; });
  std::mt19937_64 random(seed * 1'000'003 + count);
  for (int sample = 0; sample < samples; ++sample) {
    // Whole pages as often as single blocks: the choice of a page is that of its first block.
    const bool pages = sample % 2 == 0;
    const std::uint64_t key = random();
    const std::uint64_t share = random() % 7 + 1;  // of 8
    show([&](std::size_t i) {
      const Change& change = loose[i];
      const bool bytes = pages && change.kind == Kind::kBytes;
      const std::uint64_t unit =
          bytes ? change.file * 1'000'000 + change.offset / 4096 : 7'000'000'000 + i;
      return std::mt19937_64(key ^ (unit * 0x9E3779B97F4A7C15ULL))() % 8 < share;
    });
  }
}

}  // namespace masque::test
