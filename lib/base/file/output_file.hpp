// Replacing a file so that it is always old or new: a temporary in the same folder, synced, then
// renamed.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/file/file.hpp"

namespace masque {

/// Name of the temporary for `name`: ".NAME.masque-tmp", or with a hash of `name` where that
/// would have more than 255 bytes. It is the same in every run, so a leftover of a killed one
/// is found, reused and so removed.
std::string staging_name(const std::string& name);

/// Throws InputError if `path` must not be replaced: a symbolic link, not a regular file, a file
/// with more than one hard link, or an entry of a Hugging Face cache (is_cache_entry). A path where
/// nothing is may be written.
void refuse_unsafe_target(const std::string& path);

/// Whether `path` is by its names an entry of a hash-named cache, as Hugging Face's: blobs/HASH
/// with 40 or 64 hexadecimal digits.
bool is_cache_entry(const std::string& path);

/// A file being written. Unless commit() returns, the target is untouched (for the one exception
/// see there) and the temporary goes away with this object.
class OutputFile {
 public:
  /// Opens the temporary for `path`, locked against other writers of the same target.
  /// Throws InputError: unsafe target, folder not writable, another process is writing it.
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// The temporary, empty at first, open for reading and writing; stays this object's.
  int descriptor() const { return fd_.get(); }
  /// The path of the target, as given.
  const std::string& path() const { return path_; }

  /// Makes the new content durable and gives it the target's name, with the mode of the file it
  /// replaces (new files: as the umask says). Throws InputError; also when the target was changed
  /// by somebody else since this object was made. Where the last step fails, the sync of the name,
  /// the target is replaced all the same, and the message says so.
  void commit();

 private:
  std::string path_;
  std::string name_;
  std::string temporary_;
  Descriptor folder_;
  Descriptor fd_;
  std::optional<struct stat> before_;
  bool committed_ = false;
};

/// Opens (creating it if needed) and locks `name` in the open folder `folder` as a staging folder,
/// if `as_folder` says so, else as a staging file, that no other process uses. What a killed run
/// left in it stays. `path` is what messages call the target. Throws InputError; also while another
/// process writes there. On a file system without locks it is not locked.
Descriptor open_staging(int folder, const std::string& name, bool as_folder,
                        const std::string& path);

/// What stands under `name` in the open folder `folder`, links not followed; nothing if nothing
/// does. `path` is what messages call it. Throws InputError.
std::optional<struct stat> entry_state(int folder, const std::string& name,
                                       const std::string& path);

/// Gives the written file `fd` the mode of the one that it replaces, `replaced`, and as far as the
/// process may its owner; without one, the mode of a new file. `path` is what messages call it.
/// Throws InputError.
void take_mode(int fd, const std::optional<struct stat>& replaced, const std::string& path);

/// Throws InputError, which names `path`, if what stands under `name` in the open folder `folder`
/// is not the entry any more that entry_state saw as `before`, or its size or time has changed.
void refuse_changed(int folder, const std::string& name, const std::optional<struct stat>& before,
                    const std::string& path);

/// Permission bits of a new file under the process's umask. Thread-safe; without /proc the umask is
/// 0 for a moment: there not while other threads make files.
mode_t new_file_mode();

/// Replaces the file `path`, or makes it, with the content `text`: whole or not at all, as
/// OutputFile. Throws InputError.
void replace_text(const std::string& path, const std::string& text);

// One process at a time works on an output that takes long to make.

/// The right to work on an output, as long as this object exists. It is a locked file next to the
/// output, ".NAME.lock.masque-tmp": the system takes the lock away when the process ends, however
/// it does, and the file is removed with this object. What a killed process left is taken over.
class WorkLock {
 public:
  /// Takes the lock of the output `path`, which there may not be yet. Throws InputError: another
  /// process has it, or its folder is not there or cannot be written. On a file system without
  /// locks nothing is locked.
  explicit WorkLock(const std::string& path);
  WorkLock(const WorkLock&) = delete;
  WorkLock& operator=(const WorkLock&) = delete;
  ~WorkLock();

 private:
  Descriptor folder_;
  std::string name_;
  Descriptor fd_;
};

}  // namespace masque
