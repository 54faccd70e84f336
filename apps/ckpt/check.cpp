// ckpt check: the first broken rule of a checkpoint, if there is one.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "cli/option_values.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "store/tensor_stats.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::vector<std::string> checkpoints;
  bool finite = false;
  bool quick = false;
  cli::CommonOptions common;
};

/// With --finite: the first tensor that holds NaN or infinity.
std::optional<store::Violation> find_not_finite(const store::Checkpoint& checkpoint, int threads) {
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    if (is_packed(tensor.dtype)) continue;
    const store::TensorStats stats = store::tensor_stats(checkpoint, tensor, threads);
    if (stats.nans + stats.infinities == 0) continue;
    return store::Violation{
        "not-finite", fmt::format("{} NaN and {} infinite values", stats.nans, stats.infinities),
        tensor.name, tensor.begin, checkpoint.files()[tensor.file].file.path()};
  }
  return std::nullopt;
}

/// A rule that reading tolerates.
std::optional<store::Violation> find_tolerated(const store::Checkpoint& checkpoint) {
  for (const store::WeightsFile& file : checkpoint.files()) {
    if (file.content.tolerated) return file.content.tolerated;
  }
  return std::nullopt;
}

/// Without --quick: the first data that differ from their checksum.
std::optional<store::Violation> find_wrong_sum(const store::Checkpoint& checkpoint) {
  for (const store::WeightsFile& file : checkpoint.files()) {
    if (auto broken = store::check_sums(file.file, file.content)) return broken;
  }
  return std::nullopt;
}

/// Examines one checkpoint and prints its row: kDone, kFound if a rule is broken, kInput if it
/// cannot be read.
cli::ExitCode examine(const std::string& path, const Options& o, cli::Session& session,
                      cli::Table& table) {
  try {
    const auto opened = store::open_checked(path);
    const auto* checkpoint = std::get_if<store::Checkpoint>(&opened);
    std::optional<store::Violation> broken;
    if (checkpoint == nullptr) {
      broken = std::get<store::Violation>(opened);
    } else {
      for (const std::string& note : checkpoint->notes()) session.note(note);
      broken = find_tolerated(*checkpoint);
      if (!o.quick && !broken) broken = find_wrong_sum(*checkpoint);
      if (o.finite && !broken) broken = find_not_finite(*checkpoint, o.common.threads);
    }
    if (broken) {
      table.row({path, "broken", broken->rule, broken->tensor, broken->offset, broken->file,
                 broken->message},
                cli::Tone::kBad);
      return cli::ExitCode::kFound;
    }
    std::uint64_t opaque_bytes = 0;
    for (const store::OpaqueTensor& tensor : checkpoint->opaque()) opaque_bytes += tensor.bytes();
    const std::size_t opaque = checkpoint->opaque().size();
    table.row({path, "ok", "", "", std::uint64_t{0}, "",
               fmt::format("{} tensors{}, {} bytes in {}", checkpoint->tensors().size() + opaque,
                           opaque == 0 ? "" : fmt::format(" ({} opaque)", opaque),
                           checkpoint->tensor_bytes() + opaque_bytes,
                           counted(checkpoint->files().size(), "file"))},
              cli::Tone::kGood);
    return cli::ExitCode::kDone;
  } catch (const InputError& error) {  // the others are still examined
    table.row(
        {path, "unreadable", "", "", std::uint64_t{0}, "", cli::with_options(error.message())},
        cli::Tone::kBad);
    session.note(error.message());
    return cli::ExitCode::kInput;
  }
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  if (o.quick && o.finite)
    throw UsageError("--quick reads no values: cannot be combined with --finite");
  cli::Table table(session, o.common,
                   {"checkpoint", "result", "rule", "tensor", "offset", "file", "message"});
  cli::ExitCode worst = cli::ExitCode::kDone;
  for (const std::string& path : o.checkpoints) {
    worst = std::max(worst, examine(path, o, session, table));
  }
  table.finish();
  return worst;
}

}  // namespace

void declare_check(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("check",
                                    "validates headers, offsets, sizes, indexes and checksums; "
                                    "reports the first broken rule, exit code 1");
  c.example("ckpt check model.safetensors", "exit code 0 if it is valid");
  c.example("ckpt check --finite */model.safetensors", "also searches for NaN and infinity");
  c.arguments("CHECKPOINT", o->checkpoints, "checkpoints: files, folders or indexes of shards");
  c.flag("--finite", o->finite, "reads all values; NaN and infinity count as broken rules");
  c.flag("--quick", o->quick,
         "reads headers only; skips the checksums of zip files (PyTorch, npz) and TensorFlow");
  add_threads(c, o->common);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
