// Writing a whole folder so that it is there complete or not at all: staged next to the target,
// synced, then renamed.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file/file.hpp"

namespace masque {

/// What happens when the output folder exists and holds something.
enum class Existing {
  kRefuse,   ///< InputError
  kReplace,  ///< exchanged for the new one in one step, the old one then removed
};

/// A folder being written. Unless commit() returns, the target is untouched (for the one exception
/// see there) and the staging folder goes away with this object. For one thread.
class OutputFolder {
 public:
  /// Makes the staging folder for `path`, locked against other writers of the same target. With
  /// `existing` as kReplace, commit() refuses to remove anything but weights (`*.safetensors` and
  /// their index) and files that the new folder has too; a folder with symbolic links (a Hugging
  /// Face snapshot) and one that is or holds `input` are never replaced. Throws InputError: `path`
  /// is no name for a folder, a file stands there, a folder with content under kRefuse or with the
  /// input in it, or another process is writing it.
  OutputFolder(const std::string& path, Existing existing, const std::string& input = {});
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  /// The path of the target, as given.
  const std::string& path() const { return path_; }
  /// Where the files are until commit().
  std::string staging_path() const;

  /// Makes a new file `relative` ("sub/name"; sub-folders are made) with the permission bits `mode`
  /// under the umask, and those of its owner to read and write; returns it open for reading and
  /// writing. The caller writes; commit() syncs. Throws InputError, also for a file that it has
  /// made before.
  Descriptor create(const std::string& relative, unsigned mode);

  /// Throws InputError if replacing the old folder would lose a file: called by commit(), and
  /// before long work once every file is created.
  void check_replaced() const;

  /// Makes everything durable and gives the folder its name, in one step or, on a file system that
  /// cannot exchange two folders (NFS), in two. Throws InputError. Where all is done
  /// but for the sync of the name, what was replaced stays, under the name that the message gives;
  /// the next writer of the same target removes it.
  void commit();

 private:
  void sync_all();
  void rename_in_two_steps();

  std::string path_;
  std::string name_;
  std::string temporary_;
  Descriptor parent_;
  Descriptor staging_;
  std::vector<std::string> files_;
  std::vector<std::string> folders_;
  bool replaces_ = false;
  bool committed_ = false;
};

/// Whether something stands under `path` that is not an empty folder. Throws InputError if the
/// folder cannot be read.
bool is_taken(const std::string& path);

/// Gives the folder `path` its name back, if it has none because a process was killed between the
/// two steps of OutputFolder::commit(). Only while no other process writes it. Throws InputError.
void restore_folder(const std::string& path);

/// Appends the names in the open folder `folder` without "." and ".." to `names`, and sorts them
/// all; returns 0, or the errno of what went wrong.
int read_entries(int folder, std::vector<std::string>& names);

/// Removes the folder `name` in the open folder `folder` with everything below it, 32 levels deep.
/// Best effort; never throws.
void remove_tree(int folder, const std::string& name) noexcept;

/// The regular files below `path` as relative paths, sorted; links to files are followed. Links to
/// folders, dangling links, pipes and the like are left out and named in `left_out`; leftovers of
/// interrupted runs are left out and not named. Throws InputError if a folder cannot be read or
/// lies more than 32 levels deep.
std::vector<std::string> list_files(const std::string& path,
                                    std::vector<std::string>* left_out = nullptr);

/// Returns those of the files `names` in `folder` that are links to a file outside of it; links to
/// entries of a hash-named cache, as Hugging Face's, are left out, and so are links of a snapshot
/// of such a cache (models--OWNER--NAME/snapshots/REVISION) into the blobs/ of its own model.
std::vector<std::string> links_outside(const std::string& folder,
                                       const std::vector<std::string>& names);

// Writing a file that is nothing without others next to it: all are staged in one folder, synced,
// then renamed, the file that makes the others count last.

/// A file with companions in its folder. The file is never there with companions that are not its
/// own. Until commit() begins nothing has changed; if it fails before the file has its name, all is
/// as it was. A killed run can leave companions without the file: the next one replaces them. What
/// it was about to replace is then in the staging folder, and the next one puts it back first.
class OutputGroup {
 public:
  /// Makes the staging folder for `path`, locked against other writers of it. With `existing` as
  /// kReplace a file that is there, and companions that are created anew, are replaced; for a
  /// moment of commit() there is none. Throws InputError: as OutputFile; with kRefuse also if
  /// `path` exists.
  explicit OutputGroup(const std::string& path, Existing existing = Existing::kRefuse);
  OutputGroup(const OutputGroup&) = delete;
  OutputGroup& operator=(const OutputGroup&) = delete;
  ~OutputGroup();

  /// Where the files are until commit().
  const std::string& staging_path() const { return staging_path_; }

  /// Makes the file itself or a companion by its plain name `name`; returns a descriptor for
  /// reading and writing, which stays this object's and is open while it lives. A companion that is
  /// there already is replaced. Throws InputError.
  int create(const std::string& name);

  /// Makes everything durable and gives all files their names; the file itself must have been
  /// created. Throws InputError; where the last step fails, the sync of its name, the file is
  /// replaced all the same, and the message says so or where the old one is kept.
  void commit();

 private:
  struct File {
    std::string name;
    std::string staged;  ///< its path in the folder until it gets its name
    std::string kept;    ///< the path of what it replaces until all have theirs
    Descriptor fd;
    std::optional<struct stat> before;  ///< what it replaces
    bool placed = false;
  };

  std::string path_of(const std::string& name) const { return join(folder_of(path_), name); }
  void refuse_existing() const;
  void move(const std::string& from, const std::string& to, const std::string& name) const;
  void sync(int folder) const;
  void place(File& file) const;
  void set_aside();
  bool put_back() noexcept;
  void put_back_of_killed();
  void remove_staging() noexcept;

  std::string path_;
  std::string name_;
  Existing existing_;
  std::string temporary_;
  std::string kept_;  ///< in the folder: where set_aside() moves things
  std::string staging_path_;
  Descriptor folder_;
  Descriptor staging_;
  std::vector<File> files_;  ///< in commit() the file itself is the last one
  bool aside_ = false;
  bool committed_ = false;
};

}  // namespace masque
