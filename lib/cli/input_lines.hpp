// What commands that read text from standard input share.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.hpp"
#include "base/line_input.hpp"
#include "cli/command.hpp"
#include "cli/session.hpp"

namespace masque::cli {

enum class Invalid { kReplace, kSkip, kError };

/// The options --invalid, --crlf and --max-line.
struct InputOptions {
  Invalid invalid = Invalid::kReplace;
  bool crlf = false;
  std::uint64_t max_line = 64 << 20;
};
void add_input(Command& command, InputOptions& options);

/// --max-line alone.
void add_max_line(Command& command, std::uint64_t& bytes);

/// Throws UsageError if standard input is a terminal.
void need_stream(const Command& command);

/// Lines of an input made fit for a tokenizer. Counts what was wrong with them; thread-safe.
class InputLines {
 public:
  /// `name` is what messages call the input.
  explicit InputLines(const InputOptions& options, std::string name = kStandardInput)
      : options_(options), name_(std::move(name)) {}

  /// Called with each line of a batch: its number, and its text without the line feed, valid UTF-8.
  using Use = std::function<void(std::uint64_t, std::string_view)>;
  /// Lines that are not UTF-8 are repaired, left out, or an InputError.
  void each(LineBatch& batch, const Use& use);

  /// Tells once what was wrong; the exit code is 3 if lines were left out.
  ExitCode finish(Session& session) const;

 private:
  InputOptions options_;
  std::string name_;
  std::atomic<std::uint64_t> repaired_ = 0;
  std::atomic<std::uint64_t> repaired_lines_ = 0;
  std::atomic<std::uint64_t> skipped_ = 0;
  std::atomic<std::uint64_t> returns_ = 0;
};

}  // namespace masque::cli
