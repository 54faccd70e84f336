// A model of a disk under lib/base/os: what of a folder and its files would survive a loss of
// power at any moment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/os.hpp"

namespace masque::test {

/// Name → content.
using DiskState = std::map<std::string, std::string>;

/// Follows every change of one folder from where it is now. Only what was synced is sure to stay: a
/// file's bytes by the file's sync, names by the folder's. Of the rest any part may survive a loss
/// of power: single blocks of 512 bytes of a write, a size without its bytes (zeros then), a later
/// change of a name without an earlier one.
class DiskModel final : public os::FaultInjector {
 public:
  /// Watches `folder` while it lives.
  explicit DiskModel(const std::string& folder);
  DiskModel(const DiskModel&) = delete;
  DiskModel& operator=(const DiskModel&) = delete;
  ~DiskModel() override { os::set_fault_injector(before_); }

  std::optional<os::Fault> before(os::Call call, std::string_view path, std::size_t size) override;
  void after(const os::Event& event) override;

  /// How many changes were seen: the power may be lost after 0 … events() of them.
  std::size_t events() const { return log_.size(); }

  /// Calls `see` with states that the disk may have if the power is lost after `count` events:
  /// nothing unsynced survived, all of it, and every other choice up to 2^8, else `samples` random
  /// ones. The same ones for the same seed.
  void crashes(std::size_t count, int samples, std::uint64_t seed,
               const std::function<void(const DiskState&)>& see) const;

 private:
  enum class Kind { kCreate, kBytes, kSize, kCut, kRename, kUnlink, kSyncFile, kSyncFolder };
  struct Change {
    Kind kind;
    std::size_t file = 0;  ///< number of the file
    std::string name = {};
    std::string to = {};
    std::uint64_t offset = 0;
    std::string bytes = {};
  };
  struct Disk {
    std::map<std::string, std::size_t> names;
    std::map<std::size_t, std::string> contents;
  };

  static void apply(const Change& change, Disk& disk);
  std::size_t number_of(int fd) const;
  void write(std::size_t file, const os::Event& event);

  os::FaultInjector* before_;
  std::string folder_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  Disk start_;
  std::map<std::string, std::size_t> names_;    ///< as programs see them now
  std::map<ino_t, std::size_t> numbers_;        ///< files by their inodes now
  std::map<std::size_t, std::uint64_t> sizes_;  ///< as programs see them now
  std::vector<std::vector<Change>> log_;        ///< a call may be several changes
  std::size_t next_number_ = 0;
};

}  // namespace masque::test
