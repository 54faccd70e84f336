// Writing a file that is nothing without others next to it: all are staged in one folder, synced,
// then renamed, the file that makes the others count last.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/output_folder.hpp"

namespace masque {

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
