// What a running command talks through: data to stdout, words to stderr, progress on a terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace masque::cli {

/// The values of --color.
enum class ColorMode {
  kAuto,    ///< on a terminal that is not "dumb", unless NO_COLOR is set
  kAlways,  ///< always
  kNever    ///< never
};

/// Meanings that a terminal may show in colour.
enum class Tone {
  kPlain,  ///< no colour
  kGood,   ///< green
  kBad,    ///< red
  kDim     ///< dim
};

/// Options that many commands share; add_… attaches the ones that act.
struct CommonOptions {
  bool quiet = false;                  ///< -q: no notes, no progress
  bool verbose = false;                ///< -v: details
  bool json = false;                   ///< --json
  bool csv = false;                    ///< --csv
  bool no_header = false;              ///< no line of column names; no effect with --json
  int threads = 0;                     ///< -j: 1 to 1024; 0: all processors
  std::uint64_t seed = 0;              ///< of the random numbers
  ColorMode color = ColorMode::kAuto;  ///< colours on stdout
};

/// Declares -q, --quiet of `command` in `options`: Session::note() prints nothing, and there is no
/// progress.
void add_quiet(Command& command, CommonOptions& options);
/// Declares -v, --verbose of `command` in `options`: Session::detail() prints.
void add_verbose(Command& command, CommonOptions& options);
/// Declares --json, --csv and --no-header of a `command` that prints a report, in `options`.
void add_report(Command& command, CommonOptions& options);
/// Declares --json, --csv, --no-header and --color of a `command` that prints a table, in
/// `options`.
void add_table(Command& command, CommonOptions& options);
/// Declares --csv and --no-header of `command`, which has its own --json, in `options`.
void add_csv(Command& command, CommonOptions& options);
/// Declares -j, --threads of `command` in `options`: from 1 to 1024; 0, all processors, if it is
/// not given.
void add_threads(Command& command, CommonOptions& options);
/// Declares --seed of `command` in `options`: of the random numbers; 0 if it is not given.
void add_seed(Command& command, CommonOptions& options);
/// Declares --seed of a `command` that draws with some other options only; `help` says with which,
/// or what. Without it `seed` stays empty.
void add_seed(Command& command, std::optional<std::uint64_t>& seed, const std::string& help);
/// Declares --color of `command` in `options`: auto, always or never; auto asks the terminal and
/// NO_COLOR.
void add_color(Command& command, CommonOptions& options);

/// The streams of a run. Made by run_tool. For one thread, except what progress() returns.
class Session {
 public:
  /// `tool` is the name in front of messages; with `stdout_closed` print() fails when it writes.
  Session(std::string tool, bool stdout_closed);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Applies -q, -v and --color of `options`; until then they are off. Throws UsageError for --csv
  /// together with --json.
  void configure(const CommonOptions& options);

  /// Writes `text`, data, to stdout; buffered up to 64 KiB. Throws InputError if stdout is closed
  /// or cannot be written.
  void print(std::string_view text);
  /// `text` with the colour of `tone`, if stdout shows colours.
  std::string toned(Tone tone, std::string_view text) const;
  /// Whether stdout is open and a terminal.
  bool stdout_is_terminal() const { return stdout_is_terminal_; }
  /// The variable COLUMNS, else the columns of the terminal on stdout, else 80. From 20 to 1000.
  int terminal_width() const;
  /// Whether stdout takes UTF-8: yes, unless it is a terminal with another locale.
  bool takes_utf8() const;
  /// Whether stdout shows colours: toned() adds them.
  bool shows_color() const { return color_; }

  /// Writes `text` as a line to stderr, its fields spelled as options, unless -q. Removes progress.
  void note(std::string_view text);
  /// note() of each of `texts`, with what it is `about` (a file, a checkpoint) in front.
  void notes(std::string_view about, const std::vector<std::string>& texts);
  /// What is wrong where the work goes on all the same: `text` as a note that -q does not silence.
  void error(std::string_view text);
  /// As error(`text`), when the run ends: after all else on stderr but the message of what ended
  /// it. For counts that users look for there.
  void error_at_end(std::string text) { at_end_.push_back(std::move(text)); }
  /// Prints what error_at_end() was given, in the order of its calls. For run_tool.
  void print_end();
  /// The note `text` with -v and without -q.
  void detail(std::string_view text);
  /// With -v: how long this object has existed, in seconds.
  void detail_time();

  /// `text` is printed after "interrupted; " if a signal ends the run, instead of "nothing was
  /// changed".
  void say_if_interrupted(std::string text) { if_interrupted_ = std::move(text); }
  /// The text of say_if_interrupted.
  const std::string& if_interrupted() const { return if_interrupted_; }

  /// A function of (done, total) that keeps a progress line on stderr, `what` and "45 %": drawn ten
  /// times a second at most, and after 0.3 s of work. It is empty where shows_progress() is false.
  /// Calls of it are thread-safe and need no session. Removed by clear_progress.
  std::function<void(std::uint64_t, std::uint64_t)> progress(std::string what);
  /// A line on stderr of what goes on now, under everything that is printed: drawn on a terminal
  /// alone, ten times a second at most, and `text` called as often. Removed as progress() is. Text
  /// without line ends. For one thread.
  void status(const std::function<std::string()>& text);
  /// Whether progress() and status() draw: stderr is a terminal that is not dumb, and no -q.
  bool shows_progress() const { return stderr_is_terminal_ && !quiet_; }
  /// Removes the line of progress() or status() from stderr, if one was made or drawn since the
  /// last call.
  void clear_progress();

  /// Writes what is buffered. Throws as print().
  void flush();
  /// After an error: writes what is buffered once, as far as stdout takes it.
  void flush_quietly() noexcept;

 private:
  void write_stdout(std::string_view text) const;

  std::string tool_;
  std::string buffer_;
  std::string if_interrupted_ = "nothing was changed";
  std::vector<std::string> at_end_;
  bool stdout_closed_;
  bool stdout_is_terminal_;
  bool stderr_is_terminal_;
  bool color_ = false;
  bool quiet_ = false;
  bool verbose_ = false;
  /// Shared with what progress() returns, which may draw again after the line was removed.
  std::shared_ptr<std::atomic<bool>> progress_shown_ = std::make_shared<std::atomic<bool>>(false);
  std::chrono::steady_clock::time_point next_status_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace masque::cli
