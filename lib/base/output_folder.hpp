// Writing a whole folder so that it is there complete or not at all: staged next to the target,
// synced, then renamed.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"

namespace masque {

/// What happens when the output folder exists and holds something.
enum class Existing {
  kRefuse,   ///< InputError
  kReplace,  ///< exchanged for the new one in one step, the old one then removed
};

/// A folder being written. Unless commit() returns, the target is untouched and the staging folder
/// goes away with this object.
class OutputFolder {
 public:
  /// Makes the staging folder for `path`, locked against other writers of the same target.
  /// With kReplace, commit() refuses to remove anything but weights (*.safetensors and their index)
  /// and files that the new folder has too; a folder with symbolic links (a Hugging Face snapshot)
  /// and one that is or holds `input` are never replaced.
  OutputFolder(const std::string& path, Existing existing, const std::string& input = {});
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  const std::string& path() const { return path_; }
  /// Where the files are until commit().
  std::string staging_path() const;

  /// A new file `relative` ("sub/name"; sub-folders are made) with this mode, open for reading and
  /// writing. The caller writes; commit() syncs.
  Descriptor create(const std::string& relative, unsigned mode);

  /// Throws InputError if replacing the old folder would lose a file: called by commit(), and
  /// before long work once every file is created.
  void check_replaced() const;

  /// Makes everything durable and gives the folder its name. Throws InputError. Where all is done
  /// but for the sync of the name, what was replaced stays, under the name that the message gives;
  /// the next writer of the same target removes it.
  void commit();

 private:
  void sync_all();

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

/// Appends the names in an open folder without "." and "..", sorted; 0, or the errno of what went
/// wrong.
int read_entries(int folder, std::vector<std::string>& names);

/// Removes `name` in `folder` with everything below it. Best effort; never throws.
void remove_tree(int folder, const std::string& name) noexcept;

/// The regular files below `path` as relative paths, sorted; links to files are followed. Links to
/// folders, dangling links, pipes and the like are left out and named in `left_out`; leftovers of
/// interrupted runs are left out. Throws InputError if a folder cannot be read.
std::vector<std::string> list_files(const std::string& path,
                                    std::vector<std::string>* left_out = nullptr);

/// Those of these files in the folder that are links to a file outside of it; entries of a
/// hash-named cache, as Hugging Face's, are left out.
std::vector<std::string> links_outside(const std::string& folder,
                                       const std::vector<std::string>& names);

}  // namespace masque
