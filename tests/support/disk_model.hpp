// A model of the disk under lib/base/os: what of a folder and its files would survive a loss of
// power at any moment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/file/os.hpp"
#include "support/disk_log.hpp"

namespace masque::test {

/// Follows every change of one folder without folders in it, from where it is now.
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
  std::size_t events() const { return log_.events(); }

  /// Calls `see` with what the disk may have then: DiskLog::crashes.
  void crashes(std::size_t count, int samples, std::uint64_t seed,
               const std::function<void(const DiskState&)>& see) const {
    log_.crashes(count, samples, seed, see);
  }

 private:
  std::uint64_t number_of(int fd) const;

  os::FaultInjector* before_;
  std::map<std::string, std::uint64_t> names_;  ///< as programs see them now
  std::map<ino_t, std::uint64_t> numbers_;      ///< files by their inodes now
  DiskLog log_;
  std::uint64_t next_number_ = 1;
};

}  // namespace masque::test
