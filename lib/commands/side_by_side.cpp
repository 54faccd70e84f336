#include "commands/side_by_side.hpp"

#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/os.hpp"
#include "base/input/line_input.hpp"
#include "base/string/comma_list.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::commands {

namespace {

constexpr std::size_t kLinesAtOnce = 512;
/// With long lines a part ends earlier.
constexpr std::size_t kBytesAtOnce = 256 << 10;

}  // namespace

struct SideBySide::File {
  File(const std::string& path, const cli::InputOptions& options)
      : stream(path),
        input(cli::open_lines(stream.descriptor(), stream.name(), options)),
        lines(options, stream.name()) {}

  /// Whether there is a next line.
  bool more() {
    while (next == ends.size()) {
      throw_if_interrupted();
      text.clear();
      ends.clear();
      next = 0;
      if (!input.read(batch)) return false;
      lines.each(batch, [this](std::uint64_t, std::string_view line) {
        text += line;
        ends.push_back(text.size());
      });
    }
    return true;
  }
  /// The next line, where there is one.
  std::string_view take() {
    const std::size_t begin = next == 0 ? 0 : ends[next - 1];
    ++taken;
    return std::string_view(text).substr(begin, ends[next++] - begin);
  }

  InputStream stream;
  LineInput input;
  cli::InputLines lines;
  LineBatch batch;
  std::string text;
  std::vector<std::size_t> ends;  ///< of the lines in `text`
  std::size_t next = 0;
  std::uint64_t taken = 0;
};

SideBySide::SideBySide(const std::vector<std::string>& paths, const cli::InputOptions& options) {
  if (std::count(paths.begin(), paths.end(), "-") > 1)
    throw UsageError("- (standard input) is given twice, expected at most once");
  if (options.invalid == cli::Invalid::kSkip) {
    throw UsageError("--invalid skip would misalign the lines of the files; use replace or error");
  }
  for (const std::string& path : paths) files_.push_back(std::make_unique<File>(path, options));
  struct stat status {};
  if (os::stat_fd(files_.front()->stream.descriptor(), status) == 0 && S_ISREG(status.st_mode))
    size_ = static_cast<std::uint64_t>(status.st_size);
}

SideBySide::~SideBySide() = default;

bool SideBySide::read(SideBySideLines& out) {
  out.first = lines_;
  out.files = files_.size();
  out.text.clear();
  out.ends.clear();
  while (out.count() < kLinesAtOnce && out.text.size() < kBytesAtOnce) {
    const auto ended =
        std::count_if(files_.begin(), files_.end(), [](const auto& file) { return !file->more(); });
    if (ended == std::ssize(files_)) break;
    if (ended > 0) refuse_lengths();
    for (const auto& file : files_) {
      const std::string_view line = file->take();
      if (file == files_.front()) done_ += line.size() + 1;
      out.text += line;
      out.ends.push_back(out.text.size());
    }
    ++lines_;
  }
  return !out.ends.empty();
}

void SideBySide::refuse_lengths() {
  for (const auto& file : files_) {
    while (file->more()) file->take();
  }
  const File& first = *files_.front();
  for (const auto& file : files_) {
    if (file->taken == first.taken) continue;
    throw InputError(file->stream.name(),
                     fmt::format("{}, expected {} as in {}", counted(file->taken, "line"),
                                 first.taken, first.stream.name()));
  }
  MASQUE_CHECK(false);
}

void SideBySide::finish(cli::Session& session) const {
  for (const auto& file : files_) file->lines.finish(session);
}

}  // namespace masque::commands
