// Lines of several small files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.hpp"

namespace masque::commands {

struct FileLine {
  std::size_t file = 0;   ///< which of the files
  std::string_view text;  ///< without its end
};

/// --shard of each_line_of: what is found in a part is printed as JSON, for a merge.
void add_file_shard(cli::Command& command, std::optional<std::string>& shard);

/// Calls use(line) for every line that is not empty of files ("-" is standard input), or of one
/// part of each, with a progress line. An InputError of `use` is thrown again with path and line;
/// text that is not UTF-8 is one. Memory: one file of at most 1 GiB.
void each_line_of(const std::vector<std::string>& files, const std::optional<std::string>& shard,
                  const std::function<void(const FileLine&)>& use, cli::Session& session);

/// A whole file. Throws InputError.
std::string read_file(const std::string& path);

}  // namespace masque::commands
