// What a disk may have after a loss of power, from the log of recording_disk.
//   power_cut LOG                      says how many events there were before somebody made a
//                                      file `.done`, or at all
//   power_cut LOG EVENT SEED FOLDER SECTOR
//                                      makes FOLDER what the disk may have when the power is lost
//                                      after that many events; the seed chooses what survives, of
//                                      writes sectors of SECTOR bytes. Files that are there keep
//                                      their inodes
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/disk_log.hpp"

namespace {

/// Writes a file without the pages that hold nothing: images of disks are mostly empty.
void write_sparse(const std::string& path, const std::string& content) {
  constexpr std::size_t kPage = 1 << 16;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) throw std::runtime_error("cannot write " + path);
  bool ok = ::ftruncate(fd, static_cast<off_t>(content.size())) == 0;
  for (std::size_t at = 0; at < content.size(); at += kPage) {
    const std::size_t size = std::min(kPage, content.size() - at);
    const char* data = content.data() + at;
    if (std::all_of(data, data + size, [](char c) { return c == 0; })) continue;
    ok = ok && ::pwrite(fd, data, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  }
  if (::close(fd) != 0 || !ok) throw std::runtime_error("cannot write " + path);
}

void make(const std::string& folder, const masque::test::DiskState& state) {
  std::filesystem::create_directories(folder);
  std::vector<std::filesystem::path> others;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::string path = std::filesystem::relative(entry.path(), folder).string();
    if (entry.is_directory()) path += '/';
    if (!state.contains(path)) others.push_back(entry.path());
  }
  for (const auto& path : others) std::filesystem::remove_all(path);
  for (const auto& [path, content] : state) {
    if (path.ends_with('/')) {
      std::filesystem::create_directory(folder + "/" + path.substr(0, path.size() - 1));
    } else {
      write_sparse(folder + "/" + path, content);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 6) return 2;
  try {
    const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
    const masque::test::DiskLog log = argc == 2 ? masque::test::read_disk_log(argv[1])
                                                : masque::test::read_disk_log(argv[1], number(5));
    if (argc == 2) {
      std::printf("%zu\n", log.events_before(".done"));
    } else {
      make(argv[4], log.crash(number(2), number(3)));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "power_cut: %s\n", error.what());
    return 3;
  }
  return 0;
}
