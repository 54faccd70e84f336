// Text on standard input, line by line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/input_lines.hpp"

namespace masque::commands {

struct StreamOptions {
  cli::InputOptions input;
  std::optional<std::string> shard;
  std::uint64_t first_record = 0;
};

/// --shard; `whole` is what has the parts.
void add_shard(cli::Command& command, std::optional<std::string>& shard,
               const std::string& whole = "the file's lines");
/// --first-record.
void add_first_record(cli::Command& command, std::uint64_t& number);
/// Both, --invalid, --crlf, --max-line.
void add_stream(cli::Command& command, StreamOptions& options);

/// Whether a header line comes first: not with --json and --no-header, and of shards only before
/// the first, so that all of them make one table.
bool has_header(const cli::CommonOptions& common, const StreamOptions& stream);

/// Throws UsageError for "-" as the FILE of an option where standard input is the text.
void refuse_standard_input(std::string_view option, const std::optional<std::string>& file);

/// What is done with lines.
struct LineWork {
  /// A line with its number from 0.
  std::function<void(std::uint64_t id, std::string_view line)> use;
  /// Finishes what waits: when no more lines are there yet, and at the end, also before an error
  /// is reported.
  std::function<void()> flush;
  /// Whether no more lines are wanted; what follows is not looked at. None: never.
  std::function<bool()> enough = {};
  /// What the progress line says.
  std::string label = "scoring";
};

/// Runs over standard input, with a progress line if it is a file. `command` is for help.
cli::ExitCode run_lines(const StreamOptions& options, const cli::Command& command,
                        const LineWork& work, cli::Session& session);

/// InputError "standard input: line N: message" for the line with this number.
[[noreturn]] void refuse_line(const StreamOptions& options, std::uint64_t id,
                              std::string_view message);

}  // namespace masque::commands
