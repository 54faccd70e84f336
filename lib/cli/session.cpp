#include "cli/session.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/string/parse_number.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

void add_quiet(Command& command, CommonOptions& options) {
  command.flag("-q,--quiet", options.quiet, "prints no notes to stderr");
}

void add_verbose(Command& command, CommonOptions& options) {
  command.flag("-v,--verbose", options.verbose, "prints more notes to stderr");
}

void add_report(Command& command, CommonOptions& options) {
  command.flag("--json", options.json, "prints JSON instead of text");
  command.flag("--csv", options.csv, "prints CSV instead of text: a header line and one row");
  command.flag("--no-header", options.no_header, "omits the header line of the CSV");
}

void add_table(Command& command, CommonOptions& options) {
  command.flag("--json", options.json, "prints one JSON object per line instead of TSV");
  add_csv(command, options);
  add_color(command, options);
}

void add_csv(Command& command, CommonOptions& options) {
  command.flag("--csv", options.csv, "prints CSV instead of TSV, for pandas and R");
  command.flag("--no-header", options.no_header, "omits the header line of the table");
}

void add_threads(Command& command, CommonOptions& options) {
  command.option("-j,--threads", "N", options.threads, AllowedRange{1, 1024},
                 "number of threads; results do not depend on it [all processors]");
}

void add_seed(Command& command, CommonOptions& options) {
  command.option("--seed", "N", options.seed, "seed of the random numbers");
}

void add_seed(Command& command, std::optional<std::uint64_t>& seed, const std::string& help) {
  command.option("--seed", "N", seed, help + " [0]");
}

void add_color(Command& command, CommonOptions& options) {
  command.choice(
      "--color", options.color,
      {{"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}},
      "prints colours; auto: on a terminal, unless NO_COLOR is set");
}

namespace {

/// Empty if it is not set.
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool dumb_terminal() { return variable("TERM") == "dumb"; }

}  // namespace

Session::Session(std::string tool, bool stdout_closed)
    : tool_(std::move(tool)),
      stdout_closed_(stdout_closed),
      stdout_is_terminal_(!stdout_closed && ::isatty(STDOUT_FILENO) == 1),
      stderr_is_terminal_(::isatty(STDERR_FILENO) == 1 && !dumb_terminal()) {}

void Session::configure(const CommonOptions& options) {
  if (options.csv && options.json)
    throw UsageError(
        fmt::format("{} and {} cannot be combined; use one of them", field("csv"), field("json")));
  quiet_ = options.quiet;
  verbose_ = options.verbose;
  color_ = options.color == ColorMode::kAlways ||
           (options.color == ColorMode::kAuto && stdout_is_terminal_ &&
            variable("NO_COLOR").empty() && !dumb_terminal());
}

void Session::print(std::string_view text) {
  constexpr std::size_t kBuffered = 1 << 16;
  if (text.size() >= kBuffered) {
    flush();
    return write_stdout(text);  // no second copy of what is large
  }
  buffer_ += text;
  if (buffer_.size() >= kBuffered) flush();
}

void Session::flush() {
  if (!buffer_.empty()) write_stdout(std::exchange(buffer_, {}));
}

void Session::write_stdout(std::string_view text) const {
  if (stdout_closed_)
    throw InputError("standard output", "is closed, expected a file, a pipe or a terminal");
  write_all(STDOUT_FILENO, as_bytes(text), "standard output");
}

void Session::flush_quietly() noexcept {
  if (stdout_closed_ || buffer_.empty()) return;
  const ssize_t written = ::write(STDOUT_FILENO, buffer_.data(), buffer_.size());
  // What was not written stays: the next flush writes it, or reports the error.
  if (written > 0) buffer_.erase(0, static_cast<std::size_t>(written));
}

std::string Session::toned(Tone tone, std::string_view text) const {
  if (!color_ || tone == Tone::kPlain) return std::string(text);
  const char* code = tone == Tone::kGood ? "32" : tone == Tone::kBad ? "31" : "2";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

int Session::terminal_width() const {
  int width = 80;
  if (stdout_is_terminal_) {
    struct winsize size {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) width = size.ws_col;
  }
  if (const std::string_view text = variable("COLUMNS"); !text.empty()) {
    width = parse_number<int>(text).value_or(width);
  }
  return std::clamp(width, 20, 1000);
}

bool Session::takes_utf8() const {
  if (!stdout_is_terminal_) return true;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

void Session::note(std::string_view text) {
  if (!quiet_) error(text);
}

void Session::notes(std::string_view about, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) note(fmt::format("{}: {}", about, text));
}

void Session::error(std::string_view text) {
  clear_progress();
  const std::string line = message_line(tool_, text);
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nowhere left to say it
}

void Session::print_end() {
  for (const std::string& text : std::exchange(at_end_, {})) error(text);
}

void Session::detail(std::string_view text) {
  if (verbose_) note(text);
}

void Session::detail_time() {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
  detail(fmt::format("{:.2f} s", time.count()));
}

std::function<void(std::uint64_t, std::uint64_t)> Session::progress(std::string what) {
  if (!shows_progress()) return {};
  using Clock = std::chrono::steady_clock;
  *progress_shown_ = true;
  const auto next = std::make_shared<std::atomic<Clock::rep>>(
      (Clock::now() + std::chrono::milliseconds(300)).time_since_epoch().count());
  return [what = std::move(what), next, shown = progress_shown_](std::uint64_t done,
                                                                 std::uint64_t total) {
    const auto now = Clock::now();
    auto due = next->load();
    if (total == 0 || now.time_since_epoch().count() < due) return;
    const auto later = (now + std::chrono::milliseconds(100)).time_since_epoch().count();
    if (!next->compare_exchange_strong(due, later)) return;  // another thread draws
    *shown = true;
    const std::string line = fmt::format("\r\x1b[K{} {} %", what, done * 100 / total);
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
  };
}

void Session::status(const std::function<std::string()>& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!shows_progress() || now < next_status_) return;
  next_status_ = now + std::chrono::milliseconds(100);
  *progress_shown_ = true;
  // No longer than a line, which could not be taken back.
  const auto width = static_cast<std::size_t>(terminal_width()) - 1;
  const std::string line = fmt::format("\r\x1b[K{}", text().substr(0, width));
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

void Session::clear_progress() {
  if (!progress_shown_->exchange(false)) return;
  const std::string_view clear = "\r\x1b[K";
  if (::write(STDERR_FILENO, clear.data(), clear.size()) < 0) return;
}

}  // namespace masque::cli
