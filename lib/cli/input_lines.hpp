// What commands that read text from standard input share.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file/file.hpp"
#include "base/input/line_input.hpp"
#include "base/input/line_shard.hpp"
#include "base/string/utf8.hpp"
#include "cli/command.hpp"
#include "cli/session.hpp"

namespace masque::cli {

/// What happens to a line that is not UTF-8.
enum class Invalid {
  kReplace,  ///< U+FFFD replaces what is wrong
  kSkip,     ///< the line is left out, and the exit code is 3
  kError     ///< InputError
};

/// What the lines of an input are.
enum class TextFormat {
  kAuto,  ///< text; what is JSON is refused
  kText,  ///< text, whatever it looks like
  kJson   ///< a JSON object each, of which a member is the text
};

/// What happens to a line that cannot be processed: it is too long for a model, lacks what the
/// command needs, or is no JSON object where one is expected.
enum class BadLines {
  kError,  ///< InputError
  kSkip    ///< it is left out and counted, and the exit code is 3
};

/// The options --format, --field, --invalid, --crlf, --max-line and --policy.
struct InputOptions {
  TextFormat format = TextFormat::kAuto;  ///< what lines are; kJson wherever `field` is given
  std::optional<std::string> field;       ///< the member that is the text; none: "text"
  BadLines bad = BadLines::kError;        ///< what happens to a line that cannot be processed
  Invalid invalid = Invalid::kReplace;    ///< what happens to lines that are not UTF-8
  bool crlf = false;                      ///< removes a carriage return at the end of a line
  std::uint64_t max_line = 64 << 20;      ///< bytes; LineInput refuses a longer line

  /// Whether lines are JSON objects.
  bool json() const { return format == TextFormat::kJson || field; }
};
/// Declares --format, --field, --invalid, --crlf and --max-line of `command`, which reads standard
/// input, with `options` as their targets. Without `text`, lines are no text, and the first two are
/// not declared.
void add_input(Command& command, InputOptions& options, bool text = true);

/// Declares --policy of `command`, of which `bad` is the target: error or skip.
void add_policy(Command& command, BadLines& bad);

/// Returns the lines of the descriptor `fd`, which messages call `name`: JSON is refused unless
/// `options` ask for it or say that it is text; the message names the options. Throws nothing.
LineInput open_lines(int fd, const std::string& name, const InputOptions& options);

/// Declares --max-line of `command` alone, which reads standard input; `bytes` is its target.
void add_max_line(Command& command, std::uint64_t& bytes);

/// Declares --shard of `command`; `shard` receives "I/N", `whole` is what has the parts.
void add_shard(Command& command, std::optional<std::string>& shard,
               const std::string& whole = "the file's lines");

/// Bytes of the input open as `fd` if it is a file that is not packed, of a `shard` about its part;
/// else 0. For progress.
std::uint64_t size_of_input(int fd, const std::optional<Shard>& shard);

/// Throws UsageError if standard input is a terminal; the message names the --help of `command`.
void need_stream(const Command& command);

/// Notes on `session` what `surrogates` says of the JSON input that messages call `name`: "1 lone
/// surrogate in 1 line replaced by U+FFFD"; nothing where nothing was replaced.
void note_surrogates(const RepairedLines& surrogates, const std::string& name, Session& session);

/// Notes on `session` what `repaired` says of the input that messages call `name`: "2 invalid UTF-8
/// sequences in 1 line replaced by U+FFFD"; nothing where nothing was replaced.
void note_repaired(const RepairedLines& repaired, const std::string& name, Session& session);

/// Lines of an input made fit for a tokenizer. Counts what was wrong with them; thread-safe.
class InputLines {
 public:
  /// `options` are copied (max_line has no effect here); `name` is what messages call the input.
  explicit InputLines(const InputOptions& options, std::string name = kStandardInput)
      : options_(options), name_(std::move(name)) {}

  /// Where lines that cannot be processed are skipped, lines of `input` that are too long are, too:
  /// they count as by refuse(). Before the first read of `input`, which must not outlive this.
  void leave_out_long(LineInput& input);

  /// Called with each line of a batch: its number, and its text without the line feed, valid UTF-8.
  /// The text is valid during the call only.
  using Use = std::function<void(std::uint64_t, std::string_view)>;
  /// Calls `use` with the lines of `batch`, in their order, on the caller's thread; of JSON with
  /// their texts, but blank lines are passed over. Lines that are not UTF-8 are repaired, left out,
  /// or an InputError, as InputOptions::invalid says; for lines that are to be JSON and have no
  /// text, as refuse() does.
  void each(LineBatch& batch, const Use& use);
  /// The line `number` cannot be processed, `message` says why: throws InputError "NAME: line
  /// NUMBER: MESSAGE", or counts the line as left out, as InputOptions::bad says.
  void refuse(std::uint64_t number, const std::string& message);

  /// Lines of all batches that were left out, of which finish() says how many.
  std::uint64_t left_out() const { return skipped_ + bad_; }

  /// Notes on `session` what was wrong in all batches, and at the end of the run how many lines
  /// were left out; the exit code is 3 if there are any, otherwise 0. To be called once, after the
  /// last batch.
  ExitCode finish(Session& session) const;

 private:
  InputOptions options_;
  std::string name_;
  std::atomic<std::uint64_t> repaired_ = 0;
  std::atomic<std::uint64_t> repaired_lines_ = 0;
  std::atomic<std::uint64_t> surrogates_ = 0;
  std::atomic<std::uint64_t> surrogate_lines_ = 0;
  std::atomic<std::uint64_t> skipped_ = 0;
  std::atomic<std::uint64_t> returns_ = 0;
  std::mutex mutex_;
  std::uint64_t bad_ = 0;                           ///< lines that could not be processed
  std::map<std::uint64_t, std::string> first_bad_;  ///< the first of them, by number
};

}  // namespace masque::cli
