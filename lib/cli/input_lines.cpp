#include "cli/input_lines.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/os.hpp"
#include "base/split.hpp"
#include "base/utf8.hpp"

namespace masque::cli {

namespace {

/// What stands in front of a note about an input.
std::string prefix_of(const std::string& name) { return name == kStandardInput ? "" : name + ": "; }

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

void note_repaired(const RepairedLines& repaired, const std::string& name, Session& session) {
  if (repaired.sequences == 0) return;
  session.note(fmt::format("{}{} in {} replaced by U+FFFD", prefix_of(name),
                           counted(repaired.sequences, "invalid UTF-8 sequence"),
                           counted(repaired.lines, "line")));
}

void add_input(Command& command, InputOptions& options) {
  command.choice(
      "--invalid", options.invalid,
      {{"replace", Invalid::kReplace}, {"skip", Invalid::kSkip}, {"error", Invalid::kError}},
      "bytes that are not UTF-8: replace them by U+FFFD, skip their line (exit code 3), or stop");
  command.flag("--crlf", options.crlf, "removes the carriage return at the end of a line");
  add_max_line(command, options.max_line);
}

void add_max_line(Command& command, std::uint64_t& bytes) {
  command.reads_standard_input();
  command.option("--max-line", "BYTES", bytes,
                 "maximum length of a line; a longer line is an error");
}

void add_shard(Command& command, std::optional<std::string>& shard, const std::string& whole) {
  command.option("--shard", "I/N", shard, "process only the I-th of N parts of " + whole);
}

std::uint64_t size_of_input(int fd, const std::optional<Shard>& shard) {
  struct stat status {};
  if (os::stat_fd(fd, status) != 0 || !S_ISREG(status.st_mode)) return 0;
  return static_cast<std::uint64_t>(status.st_size) / (shard ? shard->count : 1);
}

void need_stream(const Command& command) {
  if (::isatty(STDIN_FILENO) != 1) return;
  throw UsageError(fmt::format(
      "no input: standard input is a terminal; pipe text in, or use < FILE (see '{} --help')",
      command.full_name()));
}

void InputLines::each(LineBatch& batch, const Use& use) {
  const bool good = valid_utf8(batch.text);
  const std::string_view all = batch.text;
  std::string repaired;
  std::uint64_t next = batch.first_line;
  std::uint64_t returns = 0;
  for_each_line(all, [&](std::string_view line) {
    const std::uint64_t number = next++;
    const bool has_feed = line.data() + line.size() != all.data() + all.size();
    // The end of the stream ends a line, too.
    if (line.ends_with('\r') && (has_feed || options_.crlf)) {
      if (options_.crlf) {
        line.remove_suffix(1);
      } else {
        ++returns;
      }
    }
    if (!good && !valid_utf8(line)) {
      if (options_.invalid == Invalid::kError) {
        throw InputError(name_, fmt::format("line {}: not valid UTF-8", number));
      }
      if (options_.invalid == Invalid::kSkip) {
        ++skipped_;
        return;
      }
      repaired.clear();
      repaired_ += append_replacing_invalid(line, repaired);
      ++repaired_lines_;
      line = repaired;
    }
    use(number, line);
  });
  returns_ += returns;
}

ExitCode InputLines::finish(Session& session) const {
  const std::string where = prefix_of(name_);
  note_repaired({repaired_, repaired_lines_}, name_, session);
  if (returns_ > 0) {
    session.note(fmt::format("{}{} end{} in a carriage return, kept as text (--crlf removes it)",
                             where, counted(returns_, "line"), returns_ == 1 ? "s" : ""));
  }
  if (skipped_ == 0) return ExitCode::kDone;
  session.note(fmt::format("{}{} {} not UTF-8 skipped", where, counted(skipped_, "line"),
                           skipped_ == 1 ? "that is" : "that are"));
  return ExitCode::kInput;
}

}  // namespace masque::cli
