// Changing files where they are, all or nothing: locked, with an undo journal next to them.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/undo_journal.hpp"

namespace masque {

/// Files of one folder that nobody else changes in place while this object lives. Movable.
class LockedFiles {
 public:
  /// Locks them (flock), waiting up to `wait_seconds` for others, then takes back what a change of
  /// one of them that was cut short has left. Throws InputError: not a plain file of its own, a
  /// link into a cache, locked by another process, no locks on this file system, or a journal of
  /// another file; Interrupted while it waits.
  LockedFiles(const std::string& folder, std::vector<std::string> names, double wait_seconds);

  struct File {
    std::string name;
    Descriptor fd;          ///< open for reading and writing
    struct stat info = {};  ///< when it was locked and whole
  };

  const std::string& path() const { return path_; }
  int folder() const { return folder_.get(); }
  const std::vector<File>& files() const { return files_; }
  /// The place of a file in files(). Aborts if it is not locked.
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
  /// `files` must outlive it. Throws InputError if a temporary cannot be made or another process
  /// is about to replace a file.
  explicit InPlaceChange(const LockedFiles& files);
  InPlaceChange(const InPlaceChange&) = delete;
  InPlaceChange& operator=(const InPlaceChange&) = delete;
  ~InPlaceChange();

  /// These bytes of files()[file] become `bytes`. Thread-safe for ranges that do not overlap; the
  /// later one counts otherwise. Throws InputError; also beyond the file's end.
  void write(std::size_t file, std::uint64_t offset, Bytes bytes);
  /// Another file of the folder, there or not, gets this content.
  void set_text(const std::string& name, std::string text);

  /// out ← the bytes of a file as they will be. Not while others write.
  void read(std::size_t file, std::uint64_t offset, MutableBytes out) const;
  /// What changes of a file: offset and size, ascending, apart. Not while others write.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges(std::size_t file) const;
  /// Bytes that change in all files.
  std::uint64_t bytes() const;

  /// Makes the change: journal, bytes, sync, `check` (if given), removal of the journal. When
  /// it returns the change is durable. Throws InputError, Interrupted and what `check` throws: the
  /// files are then as they were, or, if the system did not let that be, the journal is still
  /// there.
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
