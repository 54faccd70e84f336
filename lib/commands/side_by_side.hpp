// Several texts line by line: line N of each belongs together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/input_lines.hpp"
#include "cli/session.hpp"

namespace masque::commands {

/// Some lines of each file.
struct SideBySideLines {
  std::uint64_t first = 0;        ///< number of the first line, from 0
  std::size_t files = 0;          ///< number of files
  std::string text;               ///< the lines without their ends, one after the other
  std::vector<std::size_t> ends;  ///< in `text`: of line 0 of each file, of line 1 of each …

  /// Number of lines of each file in this part.
  std::size_t count() const { return files == 0 ? 0 : ends.size() / files; }
  /// Line `line` (from 0 in this part) of file number `file`, without its end: a view of `text`.
  std::string_view at(std::size_t line, std::size_t file) const {
    const std::size_t i = line * files + file;
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

/// Files ("-" is standard input) that have equally many lines, read together in bounded memory. Not
/// thread-safe.
class SideBySide {
 public:
  /// Opens the files at `paths`, at least one, with `options` for their lines. Throws UsageError if
  /// standard input is named twice, or is a terminal, or lines are to be left out, which would
  /// shift the others; InputError if one cannot be opened.
  SideBySide(const std::vector<std::string>& paths, const cli::InputOptions& options);
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;
  ~SideBySide();

  /// Puts the next lines into `out`, in place of what it has: at most 512 of each file, fewer if
  /// they are long; false at the end. Throws InputError for a line that is not UTF-8 with --invalid
  /// error, and where one file has fewer lines than the first or more: how many both have.
  bool read(SideBySideLines& out);
  /// Lines read so far of each file.
  std::uint64_t lines() const { return lines_; }
  /// Bytes of the first file; 0 if it is no regular file.
  std::uint64_t size() const { return size_; }
  /// About how many bytes of the first file are read; for progress.
  std::uint64_t done() const { return done_; }
  /// Notes on `session` what was repaired in each file.
  void finish(cli::Session& session) const;

 private:
  struct File;
  [[noreturn]] void refuse_lengths();

  std::vector<std::unique_ptr<File>> files_;
  std::uint64_t lines_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace masque::commands
