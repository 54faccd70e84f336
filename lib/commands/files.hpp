// Lines of several small files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/input_lines.hpp"
#include "cli/session.hpp"
#include "commands/part_contents.hpp"

namespace masque::commands {

/// A line of one of several files.
struct FileLine {
  std::size_t file = 0;   ///< which of the files
  std::string_view text;  ///< without its end
};

/// Declares --shard of a `command` that uses each_line_of: what is found in a part is printed as
/// JSON, for a merge. `shard` receives "I/N".
void add_file_shard(cli::Command& command, std::optional<std::string>& shard);

/// Calls `use` for every line that is not empty of `files` ("-" is standard input), or of the part
/// `shard` ("I/N") of each, in order, with a progress line on `session`. The text of a line is
/// valid during the call; a carriage return at its end is no part of it. An InputError of `use` is
/// thrown again with path and line, or its line is left out and counted, as `bad` says; text that
/// is not UTF-8 is one. Returns kInput if lines were left out, else kDone. Throws UsageError for a
/// `shard` that is none. Memory: one file of at most 1 GiB. Fills `input` unless it is nullptr: of
/// a part, its digest is that of all files with their lengths.
cli::ExitCode each_line_of(const std::vector<std::string>& files,
                           const std::optional<std::string>& shard,
                           const std::function<void(const FileLine&)>& use, cli::Session& session,
                           cli::BadLines bad = cli::BadLines::kError, InputPart* input = nullptr);

/// The content of the file at `path` ("-": standard input). Throws InputError if it cannot be read
/// or has more than 1 GiB.
std::string read_file(const std::string& path);

}  // namespace masque::commands
