// What happened to the files of a folder, call by call, and what a disk may have kept of it when
// the power was lost.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace masque::test {

/// Path → content; folders end with "/" and have none.
using DiskState = std::map<std::string, std::string>;

/// One change. Files and folders have numbers, which names lead to; the folder that is watched is
/// 0.
struct DiskChange {
  enum class Kind : std::uint8_t {
    kCreate,      ///< the new file `file` as `name` in `folder`
    kMakeFolder,  ///< the new folder `file` as `name` in `folder`
    kBytes,       ///< `bytes` of `file` at `offset`
    kSize,        ///< `file` grows to `offset` bytes, zeros
    kCut,         ///< `file` has `offset` bytes now
    kRename,      ///< `name` in `folder`, which is `file`, becomes `to` in `to_folder`
    kExchange,    ///< `name` and `to`, both in `folder`, change places
    kUnlink,      ///< `name` in `folder` goes away
    kSyncFile,    ///< what `file` holds is on the disk
    kSyncFolder,  ///< the names in `file` are on the disk
    kArrive,      ///< of a rename to another folder: the new name
    kLeave,       ///< the same: the old one
    kAllOnDisk,   ///< everything so far is on the disk, and is no event
  };
  Kind kind = Kind::kCreate;
  std::uint64_t file = 0;
  std::uint64_t folder = 0;
  std::string name = {};
  std::uint64_t to_folder = 0;
  std::string to = {};
  std::uint64_t offset = 0;
  std::string bytes = {};
};

/// A sequence of changes. Only what was synced is sure to stay: a file's bytes by the file's sync,
/// names by the folder's. Of the rest any part may survive a loss of power: single sectors of a
/// write, a size without its bytes (zeros then), a later change of a name without an earlier one.
/// Two names that change places do so at once; what moves to another folder is in the old one, in
/// both or in the new one.
class DiskLog {
 public:
  /// `sector`: how many bytes a disk writes whole or not at all.
  explicit DiskLog(std::uint64_t sector = 512) : sector_(sector) {}

  /// An event, or the start: kAllOnDisk.
  void add(const DiskChange& change);

  /// How many events there are: the power may be lost after 0 … events() of them.
  std::size_t events() const { return log_.size(); }
  /// How many before a file of this name was made; all if none was.
  std::size_t events_before(const std::string& name) const;

  /// Calls `see` with states that the disk may have if the power is lost after `count` events:
  /// nothing unsynced survived, all of it, and every other choice up to 2^8, else `samples` random
  /// ones. The same ones for the same seed.
  void crashes(std::size_t count, int samples, std::uint64_t seed,
               const std::function<void(const DiskState&)>& see) const;

  /// One such state, chosen by the seed: nothing or all that is unsynced, the first part of it in
  /// order, names without bytes, bytes without names, or any part.
  DiskState crash(std::size_t count, std::uint64_t seed) const;

 private:
  struct Disk {
    std::map<std::uint64_t, std::map<std::string, std::uint64_t>> names = {{0, {}}};
    std::map<std::uint64_t, std::string> contents;
    std::map<std::uint64_t, bool> arrived;  ///< moves, by their number
  };
  struct Crash {
    Disk durable;
    std::vector<DiskChange> loose;  ///< in order
  };

  std::vector<DiskChange> parts_of(const DiskChange& change);
  Crash crash_after(std::size_t count) const;
  static void settle(Crash& crash, const DiskChange& sync);
  static void apply(const DiskChange& change, Disk& disk);
  static DiskState state(const Crash& crash, const std::function<bool(std::size_t)>& survives);
  static void list(const Disk& disk, std::uint64_t folder, const std::string& path, int depth,
                   DiskState& out);

  std::uint64_t sector_;
  Disk start_;
  std::map<std::uint64_t, std::uint64_t> sizes_;  ///< as programs see them now
  std::vector<std::vector<DiskChange>> log_;      ///< an event may be several changes
  std::uint64_t moves_ = 0;
};

/// Appends a change to a file of changes. Throws std::runtime_error where it cannot.
void write_change(std::FILE* file, const DiskChange& change);

/// The changes of such a file. Throws std::runtime_error if it is none.
DiskLog read_disk_log(const std::string& path, std::uint64_t sector = 512);

}  // namespace masque::test
