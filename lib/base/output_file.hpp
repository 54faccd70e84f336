// Replacing a file so that it is always old or new: a temporary in the same folder, synced, then
// renamed.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/file.hpp"

namespace masque {

/// Name of the temporary for `name`: ".NAME.masque-tmp", or a hash of it where that is too long. It
/// is the same in every run, so a leftover of a killed one is found, reused and so removed.
std::string staging_name(const std::string& name);

/// Throws InputError if `path` must not be replaced: a symbolic link, not a regular file, or an
/// entry of a Hugging Face cache (a hash-named file in a folder "blobs").
void refuse_unsafe_target(const std::string& path);

/// Whether a path is an entry of a hash-named cache: BLOBS/HASH, as Hugging Face's.
bool is_cache_entry(const std::string& path);

/// A file being written. Unless commit() returns, the target is untouched and the temporary goes
/// away with this object.
class OutputFile {
 public:
  /// Opens the temporary for `path`, locked against other writers of the same target.
  /// Throws InputError: unsafe target, folder not writable, another process is writing it.
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  int descriptor() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  /// Makes the new content durable and gives it the target's name, with the mode of the file it
  /// replaces (new files: as the umask says). Throws InputError; also when the target was changed
  /// by somebody else since this object was made.
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

/// Opens (creating it if needed) and locks `name` in `folder` as a staging file or folder that no
/// other process uses. `path` is what messages call the target.
Descriptor open_staging(int folder, const std::string& name, bool as_folder,
                        const std::string& path);

/// What stands under `name` in a folder, links not followed; nothing if nothing does. `path` is
/// what messages call it. Throws InputError.
std::optional<struct stat> entry_state(int folder, const std::string& name,
                                       const std::string& path);

/// Gives a written file the mode and the owner of the one that it replaces; without one, the mode
/// of a new file. Throws InputError.
void take_mode(int fd, const std::optional<struct stat>& replaced, const std::string& path);

/// Throws InputError if an entry is not the one any more that entry_state saw.
void refuse_changed(int folder, const std::string& name, const std::optional<struct stat>& before,
                    const std::string& path);

/// Permission bits of a new file under the process's umask.
mode_t new_file_mode();

/// Writes a text file whole or not at all. Throws InputError.
void replace_text(const std::string& path, const std::string& text);

}  // namespace masque
