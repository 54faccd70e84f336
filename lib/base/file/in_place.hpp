// Changing files where they are, all or nothing: locked, with an undo journal next to them.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/file/file.hpp"
#include "base/file/undo_journal.hpp"

namespace masque {

/// Files of one folder that nobody else changes in place while this object lives. Movable.
class LockedFiles {
 public:
  /// Locks the entries `names` of `folder` (flock), waiting up to `wait_seconds` for others for
  /// each of them, then takes back what a change of one of them that was cut short has left. Throws
  /// InputError: not a plain file of its own, a link into a cache, locked by another process, no
  /// locks on this file system, or a journal that is damaged or of another file; Interrupted while
  /// it waits.
  LockedFiles(const std::string& folder, std::vector<std::string> names, double wait_seconds);

  /// A locked file.
  struct File {
    std::string name;       ///< in the folder
    Descriptor fd;          ///< open for reading and writing
    struct stat info = {};  ///< when it was locked and whole
  };

  /// The path of the folder, as given.
  const std::string& path() const { return path_; }
  /// The open descriptor of the folder, which stays this object's.
  int folder() const { return folder_.get(); }
  /// The files, sorted by name, each once; behind them others that a change which was taken back
  /// had touched.
  const std::vector<File>& files() const { return files_; }
  /// Returns the index in files() of the file `name`, which must be locked: a MASQUE_CHECK.
  std::size_t find(const std::string& name) const;
  /// Names of the files whose unfinished change was taken back.
  const std::vector<std::string>& recovered() const { return recovered_; }

 private:
  void lock(const std::string& name);
  /// Of a run that was killed; not of one that is about to replace the file.
  void remove_leftover(const std::string& name) const;
  void recover();

  std::string path_;
  double wait_seconds_;
  Descriptor folder_;
  std::vector<File> files_;
  std::vector<std::string> recovered_;
};

/// New bytes for locked files, and new texts next to them. Until commit() they wait in temporary
/// files next to the targets, so everything can be computed from the old bytes. Only what differs
/// is written, in blocks of 512 bytes.
class InPlaceChange {
 public:
  /// Changes some of `files`, which must outlive it. Makes no file yet.
  explicit InPlaceChange(const LockedFiles& files);
  InPlaceChange(const InPlaceChange&) = delete;
  InPlaceChange& operator=(const InPlaceChange&) = delete;
  ~InPlaceChange();

  /// From byte `offset` on, LockedFiles::files()[file] gets these `bytes`. Thread-safe for ranges
  /// that do not overlap; the later one counts otherwise. Throws InputError: beyond the file's end,
  /// a temporary that cannot be made, or another process that is about to replace the file.
  void write(std::size_t file, std::uint64_t offset, Bytes bytes);
  /// The file `name` of the folder, not a locked one, there or not, gets the content `text`. Reads
  /// what it has now, at most 1 GiB. Throws InputError.
  void set_text(const std::string& name, std::string text);

  /// Fills `out` with the bytes of LockedFiles::files()[file] from byte `offset` on, as they will
  /// be. Not while others write. Throws InputError.
  void read(std::size_t file, std::uint64_t offset, MutableBytes out) const;
  /// What changes of LockedFiles::files()[file]: offset and size in bytes, ascending, apart. Not
  /// while others write.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges(std::size_t file) const;
  /// Bytes that change in all locked files, without those of set_text().
  std::uint64_t bytes() const;

  /// Makes the change: journal, bytes, sync, `check` (if given), removal of the journal. When it
  /// returns the change is durable. Throws InputError, Interrupted and what `check` throws: the
  /// files are then as they were, or, if the system did not let that be, the journal is still
  /// there. Only where the last sync fails, that of the journal's removal, the change is made,
  /// and the message says so. Where nothing changes, nothing is done and `check` is not called.
  void commit(const std::function<void()>& check = {});

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  ///< offset, size

  void add_range(std::size_t file, std::uint64_t offset, std::uint64_t size);
  void check_unchanged() const;
  UndoPlan plan() const;
  void apply(const UndoPlan& plan);

  const LockedFiles* files_;
  struct Scratch {
    Descriptor fd;
    std::string name;
  };
  std::vector<Scratch> scratch_;
  mutable std::mutex mutex_;
  std::vector<Ranges> ranges_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::string> old_texts_;  ///< of those that are there
};

}  // namespace masque
