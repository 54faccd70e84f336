#include "commands/files.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/line_shard.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/parallel.hpp"

namespace masque::commands {

namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 30;

void check(std::string_view line) {
  if (!valid_utf8(line)) throw InputError("not valid UTF-8");
}

}  // namespace

std::string read_file(const std::string& path) { return read_text(path, kLargest); }

void add_file_shard(cli::Command& command, std::optional<std::string>& shard) {
  cli::add_shard(command, shard, "each file; prints JSON");
}

cli::ExitCode each_line_of(const std::vector<std::string>& files,
                           const std::optional<std::string>& shard,
                           const std::function<void(const FileLine&)>& use, cli::Session& session,
                           cli::BadLines bad, InputPart* input) {
  cli::ExitCode code = cli::ExitCode::kDone;
  std::optional<Shard> part;
  if (shard) part = parse_shard(*shard);
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  const auto progress = session.progress("scoring");
  for (std::size_t f = 0; f < files.size(); ++f) {
    const std::string content = read_file(files[f]);
    if (input != nullptr && part) {
      hasher->add(as_bytes(fmt::format("{}:", content.size())));
      hasher->add(as_bytes(content));
    }
    std::string_view text = content;
    std::uint64_t number = 0;
    if (part) {
      const LineSpan span = find_shard(text, *part);
      number = span.lines_before;
      text = text.substr(span.begin, span.end - span.begin);
    }
    const std::size_t all = text.size();
    bool some = false;
    cli::InputOptions options;
    options.bad = bad;
    cli::InputLines lines(options, input_name(files[f]));
    for_each_line(text, [&](std::string_view line) {
      const auto end = static_cast<std::size_t>(line.data() - text.data()) + line.size();
      ++number;
      line = without_return(line);
      if (line.empty()) return;
      some = true;
      const auto problem = input_error_message([&] {
        check(line);
        use({f, line});
      });
      if (problem) lines.refuse(number, *problem);
      // Files count alike; the bytes of one are spread over a thousand steps.
      if (progress) progress(f * 1000 + std::min(end + 1, all) * 1000 / all, files.size() * 1000);
    });
    // A part may have none.
    if (!some && !part) throw InputError(input_name(files[f]), "no lines, expected some");
    if (input != nullptr) input->left_out += lines.left_out();
    if (const cli::ExitCode end = lines.finish(session); end != cli::ExitCode::kDone) code = end;
  }
  if (input != nullptr) input->digest = hasher->digest();
  return code;
}

}  // namespace masque::commands
