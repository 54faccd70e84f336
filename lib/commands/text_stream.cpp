#include "commands/text_stream.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/line_shard.hpp"
#include "base/thread/parallel.hpp"
#include "base/thread/shortage.hpp"

namespace masque::commands {

void add_first_record(cli::Command& command, std::uint64_t& number) {
  command.option("--first-record", "N", number,
                 "number of the first line, if the input is a part of a stream");
}

void add_stream(cli::Command& command, StreamOptions& options, const StreamHelp& help) {
  cli::add_shard(command, options.shard);
  add_first_record(command, options.first_record);
  cli::add_input(command, options.input, help.text);
  if (help.policy) cli::add_policy(command, options.input.bad);
}

bool has_header(const cli::CommonOptions& common, const StreamOptions& stream) {
  if (common.json || common.no_header) return false;
  return !stream.shard || parse_shard(*stream.shard).index == 1;
}

void print_part_as_json(cli::CommonOptions& common, const std::optional<std::string>& shard) {
  if (!shard) return;
  if (common.csv)
    throw UsageError(
        "--csv cannot be combined with --shard: merge reads JSON; give --csv to merge");
  common.json = true;
}

void refuse_standard_input(std::string_view option, const std::optional<std::string>& file) {
  if (file == "-")
    throw UsageError(fmt::format("{} -: standard input is already the text; use a file", option));
}

cli::ExitCode run_lines(const StreamOptions& options, const cli::Command& command,
                        const LineWork& work, cli::Session& session) {
  if (options.file == "-") cli::need_stream(command);
  const InputStream stream(options.file);
  LineInput input = cli::open_lines(stream.descriptor(), stream.name(), options.input);
  std::optional<Shard> shard;
  if (options.shard) {
    shard = parse_shard(*options.shard);
    input.cut(*shard);
    if (work.part != nullptr)
      work.part->digest = digest_of_whole(stream.descriptor(), stream.name());
  }
  const std::uint64_t total = cli::size_of_input(stream.descriptor(), shard);
  const auto progress = session.progress(work.label);
  std::uint64_t done = 0;
  cli::InputLines lines(options.input, stream.name());
  lines.leave_out_long(input);
  LineBatch batch;
  const std::exception_ptr failed = caught([&] {
    const auto enough = [&] { return work.enough && work.enough(); };
    while (!enough() && input.read(batch)) {
      lines.each(batch, [&](std::uint64_t number, std::string_view line) {
        if (enough()) return;
        if (const auto problem = work.use(options.first_record + number - 1, line))
          lines.refuse(number, *problem);
        done += line.size() + 1;
        if (progress && total > 0) progress(std::min(done, total), total);
      });
      if (input.ready()) continue;
      work.flush();
      session.flush();
    }
  });
  if (!is_unfinished(failed)) work.flush();
  session.clear_progress();
  if (failed) {
    // What was printed before it is good, whatever kind of error it is.
    session.flush_quietly();
    std::rethrow_exception(failed);
  }
  if (work.part != nullptr) work.part->left_out = lines.left_out();
  return lines.finish(session);
}

void refuse_empty(bool measured, cli::ExitCode code, const StreamOptions& options,
                  const std::optional<std::string>& records, std::string_view problem) {
  if (measured || code != cli::ExitCode::kDone || options.shard) return;
  throw InputError(input_name(records.value_or(options.file)), std::string(problem));
}

}  // namespace masque::commands
