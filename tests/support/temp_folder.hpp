// A fresh folder that goes away with the test, and whole-file helpers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::test {

/// An empty folder of its own under the system's place for temporary files, removed at the end.
class TempFolder {
 public:
  TempFolder();
  /// In memory where the system has such a place: for tests that sync very often.
  static TempFolder in_memory();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const;
  /// The names in it, sorted, hidden ones too.
  std::vector<std::string> names() const;

 private:
  explicit TempFolder(std::string parent);

  std::string path_;
};

/// The names in a folder, sorted, hidden ones too.
std::vector<std::string> names_in(const std::string& path);

/// The content of a file. Throws std::runtime_error if it cannot be read.
std::string read_file(const std::string& path);

/// Writes or replaces a file; folders on the way are made.
void write_file(const std::string& path, std::string_view content);

}  // namespace masque::test
