// What the commands that read text share: the tokenizer, and standard input line by line.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "base/line_input.hpp"
#include "cli/run_tool.hpp"
#include "text/tokenizer.hpp"

namespace masque::tok {

enum class Invalid { kReplace, kSkip, kError };

/// The options --invalid, --crlf and --max-line.
struct InputOptions {
  Invalid invalid = Invalid::kReplace;
  bool crlf = false;
  std::uint64_t max_line = 64 << 20;
};
void add_input(cli::Command& command, InputOptions& options);

/// --flavor.
void add_flavor(cli::Command& command, text::OpenOptions& options);

/// Opens a tokenizer and tells what is odd about it.
text::Tokenizer open_tokenizer(const std::string& path, const text::OpenOptions& options,
                               cli::Session& session);

/// Throws UsageError, with the command's help on stderr, if standard input is a terminal.
void need_stream(const cli::Command& command);

/// Lines of standard input made fit for a tokenizer. Counts what was wrong with them; thread-safe.
class InputLines {
 public:
  explicit InputLines(const InputOptions& options) : options_(options) {}

  /// Called with each line of a batch: its number, and its text without the line feed, valid UTF-8.
  using Use = std::function<void(std::uint64_t, std::string_view)>;
  /// Lines that are not UTF-8 are repaired, left out, or an InputError.
  void each(LineBatch& batch, const Use& use);

  /// Tells once what was wrong; the exit code is 3 if lines were left out.
  cli::ExitCode finish(cli::Session& session) const;

 private:
  InputOptions options_;
  std::atomic<std::uint64_t> repaired_ = 0;
  std::atomic<std::uint64_t> repaired_lines_ = 0;
  std::atomic<std::uint64_t> skipped_ = 0;
  std::atomic<std::uint64_t> returns_ = 0;
};

}  // namespace masque::tok
