// Text on standard input, or of one file, line by line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/input_lines.hpp"
#include "commands/part_contents.hpp"

namespace masque::commands {

/// Which lines are read, and how they are numbered.
struct StreamOptions {
  std::string file = "-";            ///< a path; "-": standard input
  cli::InputOptions input;           ///< how lines are read
  std::optional<std::string> shard;  ///< "I/N": only this part of a file
  std::uint64_t first_record = 0;    ///< number of the first line of the file
};

/// Declares --first-record of `command`; `number` is its target.
void add_first_record(cli::Command& command, std::uint64_t& number);
/// What add_stream() declares.
struct StreamHelp {
  bool text = true;    ///< lines are text: --format and --field
  bool policy = true;  ///< --policy error or skip; commands with more policies have their own
};
/// Declares --shard, --first-record, --invalid, --crlf and --max-line of `command`, and what `help`
/// says, with `options` as their targets.
void add_stream(cli::Command& command, StreamOptions& options, const StreamHelp& help = {});

/// Whether a header line comes first: not with --json and --no-header of `common`, and of shards of
/// `stream` only before the first, so that all of them make one table. Throws UsageError for a
/// shard that is none.
bool has_header(const cli::CommonOptions& common, const StreamOptions& stream);

/// Makes `common` print JSON for a `shard`, whose part merge reads. Throws UsageError for --csv
/// with one.
void print_part_as_json(cli::CommonOptions& common, const std::optional<std::string>& shard);

/// Throws UsageError if `file`, the FILE of `option` ("--name"), is "-", where standard input is
/// the text.
void refuse_standard_input(std::string_view option, const std::optional<std::string>& file);

/// What is done with lines.
struct LineWork {
  /// A line, valid UTF-8, with its number: StreamOptions::first_record is that of the file's first.
  /// Returns why the line cannot be processed, or nothing.
  std::function<std::optional<std::string>(std::uint64_t id, std::string_view line)> use;
  /// Finishes what waits: when no more lines are there yet, and at the end, also before an error
  /// is reported.
  std::function<void()> flush;
  /// Whether no more lines are wanted; what follows is not looked at. None: never.
  std::function<bool()> enough = {};
  /// Receives what merge must know of the input; nullptr: it is not merged.
  InputPart* part = nullptr;
  /// What the progress line says.
  std::string label = "scoring";
};

/// Does `work` with the lines of the input that `options` name, on the caller's thread, with a
/// progress line on `session` if it is a file; the name of `command` is for the message about a
/// terminal. What was complete is flushed and printed before an error is thrown again. A line that
/// cannot be processed is an InputError that names it, or is left out and counted, as
/// InputOptions::bad says. Returns kInput if lines were left out, else kDone. Throws UsageError if
/// the input is a terminal or the shard is none, or cannot be cut; InputError as LineInput and
/// cli::InputLines do.
cli::ExitCode run_lines(const StreamOptions& options, const cli::Command& command,
                        const LineWork& work, cli::Session& session);

/// Throws InputError, which names `records` or else the input in `options` and says `problem`, if a
/// run ended with `code` kDone and has not `measured` anything. Never throws for a shard, which may
/// be empty.
void refuse_empty(bool measured, cli::ExitCode code, const StreamOptions& options,
                  const std::optional<std::string>& records = std::nullopt,
                  std::string_view problem =
                      "no lines that can be measured, expected some with "
                      "tokens");

}  // namespace masque::commands
