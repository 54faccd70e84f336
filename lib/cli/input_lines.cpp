#include "cli/input_lines.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/os.hpp"
#include "base/input/text_source.hpp"
#include "base/json/json_text.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"

namespace masque::cli {

namespace {

/// What stands in front of a note about an input.
std::string prefix_of(const std::string& name) { return name == kStandardInput ? "" : name + ": "; }

}  // namespace

void note_repaired(const RepairedLines& repaired, const std::string& name, Session& session) {
  if (repaired.sequences == 0) return;
  session.note(fmt::format("{}{} in {} replaced by U+FFFD", prefix_of(name),
                           counted(repaired.sequences, "invalid UTF-8 sequence"),
                           counted(repaired.lines, "line")));
}

void note_surrogates(const RepairedLines& surrogates, const std::string& name, Session& session) {
  if (surrogates.sequences == 0) return;
  session.note(fmt::format("{}{} in {} replaced by U+FFFD", prefix_of(name),
                           counted(surrogates.sequences, "lone surrogate"),
                           counted(surrogates.lines, "line")));
}

void add_input(Command& command, InputOptions& options, bool text) {
  if (text) {
    command.choice(
        "--format", options.format,
        {{"auto", TextFormat::kAuto}, {"text", TextFormat::kText}, {"jsonl", TextFormat::kJson}},
        "what lines are: text, or JSON objects with a text; auto: text, but JSON is an "
        "error");
    command.option("--field", "NAME", options.field,
                   "member of each JSON object that is the text; implies --format jsonl [text]");
    command.read_only_if(
        {"field"}, [&options] { return options.format != TextFormat::kText; },
        "with --format text");
  }
  command.choice(
      "--invalid", options.invalid,
      {{"replace", Invalid::kReplace}, {"skip", Invalid::kSkip}, {"error", Invalid::kError}},
      "bytes that are not UTF-8: replace them by U+FFFD, skip their line (exit code 3), or stop");
  command.flag("--crlf", options.crlf, "removes the carriage return at the end of a line");
  add_max_line(command, options.max_line);
}

void add_policy(Command& command, BadLines& bad) {
  command.choice("--policy", bad, {{"error", BadLines::kError}, {"skip", BadLines::kSkip}},
                 "a line that cannot be processed: stop, or skip it and continue (exit code 3)");
}

LineInput open_lines(int fd, const std::string& name, const InputOptions& options) {
  LineInput input(fd, name, options.max_line);
  if (options.format == TextFormat::kAuto && !options.json()) {
    input.refuse_json(fmt::format(
        "{} NAME reads the member NAME of the JSON object on each line, {} text reads the lines as "
        "they are",
        field("field"), field("format")));
  }
  return input;
}

void add_max_line(Command& command, std::uint64_t& bytes) {
  command.reads_standard_input();
  command.option("--max-line", "BYTES", bytes,
                 "maximum length of a line; a longer line cannot be processed");
}

void add_shard(Command& command, std::optional<std::string>& shard, const std::string& whole) {
  command.option("--shard", "I/N", shard, "process only the I-th of N parts of " + whole);
}

std::uint64_t size_of_input(int fd, const std::optional<Shard>& shard) {
  struct stat status {};
  if (os::stat_fd(fd, status) != 0 || !S_ISREG(status.st_mode)) return 0;
  if (packing_of_file(fd, "input") != Packing::kNone) return 0;
  return static_cast<std::uint64_t>(status.st_size) / (shard ? shard->count : 1);
}

void need_stream(const Command& command) {
  if (::isatty(STDIN_FILENO) != 1) return;
  throw UsageError(fmt::format(
      "no input: standard input is a terminal; pipe text in, or use < FILE (see '{} --help')",
      command.full_name()));
}

void InputLines::leave_out_long(LineInput& input) {
  if (options_.bad != BadLines::kSkip) return;
  input.leave_out_long(
      [this](std::uint64_t number, const std::string& problem) { refuse(number, problem); });
}

void InputLines::each(LineBatch& batch, const Use& use) {
  const bool good = valid_utf8(batch.text);
  const std::string_view all = batch.text;
  std::string repaired, text;
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
    if (!options_.json()) return use(number, line);
    if (line.find_first_not_of(kBlanksOfLine) == std::string_view::npos) return;
    std::uint64_t surrogates = 0;
    const auto problem = read_json_text(line, options_.field.value_or("text"), text, surrogates);
    surrogates_ += surrogates;
    surrogate_lines_ += surrogates > 0 ? 1 : 0;
    if (problem) return refuse(number, *problem);
    use(number, text);
  });
  // To JSON it is white space.
  if (!options_.json()) returns_ += returns;
}

void InputLines::refuse(std::uint64_t number, const std::string& message) {
  if (options_.bad == BadLines::kError)
    throw InputError(name_, fmt::format("line {}: {}", number, message));
  constexpr std::size_t kFirstBad = 10;
  const std::lock_guard lock(mutex_);
  ++bad_;
  first_bad_.emplace(number, message);
  if (first_bad_.size() > kFirstBad) first_bad_.erase(std::prev(first_bad_.end()));
}

ExitCode InputLines::finish(Session& session) const {
  const std::string where = prefix_of(name_);
  note_repaired({repaired_, repaired_lines_}, name_, session);
  note_surrogates({surrogates_, surrogate_lines_}, name_, session);
  if (returns_ > 0) {
    session.note(fmt::format("{}{} end{} in a carriage return, kept as text (--crlf removes it)",
                             where, counted(returns_.load(), "line"), returns_ == 1 ? "s" : ""));
  }
  for (const auto& [number, message] : first_bad_)
    session.error(fmt::format("{}: line {}: {}", escape(name_), number, message));
  if (skipped_ > 0) {
    session.note(fmt::format("{}{} {} not UTF-8 skipped", where, counted(skipped_.load(), "line"),
                             skipped_ == 1 ? "that is" : "that are"));
  }
  if (bad_ > 0) session.error_at_end(fmt::format("{}{} skipped", where, counted(bad_, "line")));
  return skipped_ + bad_ == 0 ? ExitCode::kDone : ExitCode::kInput;
}

}  // namespace masque::cli
