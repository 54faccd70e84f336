// What a running command talks through: data to stdout, words to stderr, progress on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.hpp"

namespace masque::cli {

enum class ColorMode { kAuto, kAlways, kNever };

/// Meanings that a terminal may show in colour.
enum class Tone { kPlain, kGood, kBad, kDim };

/// Options that many commands share; add_… attaches the ones that act.
struct CommonOptions {
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  bool no_header = false;
  int threads = 0;
  std::uint64_t seed = 0;
  ColorMode color = ColorMode::kAuto;
};

/// -q, --quiet: Session::note() prints nothing, and there is no progress.
void add_quiet(Command& command, CommonOptions& options);
/// -v, --verbose: Session::detail() prints.
void add_verbose(Command& command, CommonOptions& options);
/// --json, for commands that print a report.
void add_json(Command& command, CommonOptions& options);
/// --json, --no-header and --color, for commands that print a table.
void add_table(Command& command, CommonOptions& options);
/// --no-header alone.
void add_no_header(Command& command, CommonOptions& options);
/// -j, --threads: from 1 to 1024; 0, all processors, if it is not given.
void add_threads(Command& command, CommonOptions& options);
/// --seed: of the random numbers; 0 if it is not given.
void add_seed(Command& command, CommonOptions& options);
/// --seed of commands that draw with some other options only; `help` says with which, or what.
void add_seed(Command& command, std::optional<std::uint64_t>& seed, const std::string& help);
/// --color: auto, always or never; auto asks the terminal and NO_COLOR.
void add_color(Command& command, CommonOptions& options);

/// The streams of a run. Made by run_tool.
class Session {
 public:
  Session(std::string tool, bool stdout_closed);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Applies -q, -v and --color.
  void configure(const CommonOptions& options);

  /// Data for stdout; buffered. Throws InputError if stdout is closed or cannot be written.
  void print(std::string_view text);
  /// `text` with the colour of a tone, if stdout shows colours.
  std::string toned(Tone tone, std::string_view text) const;
  bool stdout_is_terminal() const { return stdout_is_terminal_; }
  /// Columns of the terminal on stdout, or COLUMNS; 80 where there is neither. From 20 to 1000.
  int terminal_width() const;
  /// Whether stdout takes UTF-8: yes, unless it is a terminal with another locale.
  bool takes_utf8() const;
  bool shows_color() const { return color_; }

  /// A word on stderr, its fields spelled as options, unless -q.
  void note(std::string_view text);
  /// What is wrong where the work goes on all the same: a note that -q does not silence.
  void error(std::string_view text);
  /// A word on stderr with -v.
  void detail(std::string_view text);
  /// With -v: how long the run has taken so far.
  void detail_time();

  /// What is printed after "interrupted; " if a signal ends the run, instead of "nothing was
  /// changed".
  void say_if_interrupted(std::string text) { if_interrupted_ = std::move(text); }
  const std::string& if_interrupted() const { return if_interrupted_; }

  /// A function that keeps a progress line on stderr, "what 45 %": drawn only on a terminal, ten
  /// times a second at most, and after a moment of work. Thread-safe. Removed by clear_progress.
  std::function<void(std::uint64_t, std::uint64_t)> progress(std::string what);
  /// A line on stderr of what goes on now, under everything that is printed: drawn on a terminal
  /// alone, ten times a second at most, and `text` called as often. Removed as progress() is. Text
  /// without line ends. For one thread.
  void status(const std::function<std::string()>& text);
  /// Whether progress() and status() draw.
  bool shows_progress() const { return stderr_is_terminal_ && !quiet_; }
  void clear_progress();

  /// Writes what is buffered and checks that it arrived.
  void flush();
  /// After an error: what was complete by then still arrives, if it can.
  void flush_quietly() noexcept;

 private:
  void write_stdout(std::string_view text) const;

  std::string tool_;
  std::string buffer_;
  std::string if_interrupted_ = "nothing was changed";
  bool stdout_closed_;
  bool stdout_is_terminal_;
  bool stderr_is_terminal_;
  bool color_ = false;
  bool quiet_ = false;
  bool verbose_ = false;
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point next_status_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace masque::cli
