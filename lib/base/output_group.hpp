// Writing a file that is nothing without others next to it: all are staged in one folder, synced,
// then renamed, the file that makes the others count last.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"

namespace masque {

/// A new file with companions in its folder. The file is never there before they are. Until
/// commit() begins nothing has changed; if it fails before the file has its name, the companions go
/// again. A killed run can leave companions without the file: the next one replaces them.
class OutputGroup {
 public:
  /// Makes the staging folder for `path`, locked against other writers of it. Throws InputError:
  /// `path` exists (two files are not replaced in one step), or as OutputFile.
  explicit OutputGroup(const std::string& path);
  OutputGroup(const OutputGroup&) = delete;
  OutputGroup& operator=(const OutputGroup&) = delete;
  ~OutputGroup();

  /// Where the files are until commit().
  const std::string& staging_path() const { return staging_path_; }

  /// The file itself or a companion by its plain name, open for reading and writing while this
  /// object lives. A companion that is there already is replaced. Throws InputError.
  int create(const std::string& name);

  /// Makes everything durable and gives all files their names. Throws InputError.
  void commit();

 private:
  void rename(const std::string& name) const;
  void refuse_existing() const;

  struct File {
    std::string name;
    Descriptor fd;
    bool renamed = false;
  };

  std::string path_;
  std::string name_;
  std::string temporary_;
  std::string staging_path_;
  Descriptor folder_;
  Descriptor staging_;
  std::vector<File> files_;
  bool committed_ = false;
};

}  // namespace masque
