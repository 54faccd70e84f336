#include "cli/input_lines.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/split.hpp"
#include "base/utf8.hpp"

namespace masque::cli {

void add_input(Command& command, InputOptions& options) {
  command.choice(
      "--invalid", options.invalid,
      {{"replace", Invalid::kReplace}, {"skip", Invalid::kSkip}, {"error", Invalid::kError}},
      "bytes that are not UTF-8: replace them by U+FFFD, skip their line (exit code 3), or stop");
  command.flag("--crlf", options.crlf, "removes the carriage return at the end of a line");
  add_max_line(command, options.max_line);
}

void add_max_line(Command& command, std::uint64_t& bytes) {
  command.option("--max-line", "BYTES", bytes,
                 "maximum length of a line; a longer line is an error");
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
    if (line.ends_with('\r') && has_feed) {
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
  const std::string where = name_ == kStandardInput ? "" : name_ + ": ";
  if (repaired_ > 0) {
    session.note(fmt::format("{}{} invalid UTF-8 sequences in {} lines replaced by U+FFFD", where,
                             repaired_.load(), repaired_lines_.load()));
  }
  if (returns_ > 0) {
    session.note(
        fmt::format("{}{} lines end in a carriage return, kept as text (--crlf removes it)", where,
                    returns_.load()));
  }
  if (skipped_ == 0) return ExitCode::kDone;
  session.note(fmt::format("{}{} lines that are not UTF-8 skipped", where, skipped_.load()));
  return ExitCode::kInput;
}

}  // namespace masque::cli
