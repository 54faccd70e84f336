// embed-fix mlm-correct: the correction of the input table, and a report of it.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/file/file.hpp"
#include "base/thread/parallel.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "commands/write_flags.hpp"
#include "model/family.hpp"
#include "shared_options.hpp"
#include "store/config.hpp"
#include "surgery/correction/correct_checkpoint.hpp"

namespace masque::embed_fix {

namespace {

enum class Tied { kAuto, kUntie, kKeep, kRefuse };

struct Options {
  std::string in;
  std::optional<std::string> out;
  surgery::CorrectionRequest request;
  Tied tied = Tied::kAuto;
  commands::WriteFlags write;
  InPlaceChoice in_place;
  cli::CommonOptions common;
};

cli::Report report_of(const surgery::CorrectionReport& r) {
  const surgery::RowMoves& moves = r.moves;
  const auto n = static_cast<double>(moves.rows);
  cli::Report out;
  const surgery::MlmRates& rates = r.correction.rates;
  const std::string shape = shape_text(r.shape);
  out.add("tensor", r.tensor);
  out.add("dtype", dtype_name(r.dtype));
  out.add("shape", cli::Cell::raw(shape, shape));
  out.add("direction", r.inverse ? "inverse" : "forward");
  out.add("scale", rates.scale());
  out.add("mask_weight", rates.mask_weight());
  out.add("mean_weight", rates.mean_weight());
  out.add("mask_row", r.correction.mask_row);
  out.add("rows_changed", moves.rows);
  out.add("rows_kept", r.shape[0] - moves.rows);
  if (moves.rows > 0) {
    out.add("norm_before", moves.sum_norm_before / n);
    out.add("norm_after", moves.sum_norm_after / n);
    out.add("relative_move_mean", moves.sum_relative / n);
    out.add("relative_move_max", moves.max_relative);
    out.add("cosine_mean", moves.sum_cosine / n);
    out.add("cosine_min", moves.min_cosine);
    out.add("cosine_min_row", moves.min_cosine_row);
    out.add("cosine_min_token", r.min_cosine_token);
  }
  out.add("added", cli::list_cell(r.added_tensors));
  if (r.verified) add_verified(out, *r.verified);
  return out;
}

/// Whether a config.json describes a model that learns without [MASK]: a causal one, T-TA, one of
/// several streams, ELECTRA's discriminator, or one whose token dropout makes its embedding 0.
/// False where it cannot be told.
bool learns_without_mask(const std::string& path) {
  bool without = false;
  const auto unknown = input_error_message([&] {
    const auto config = store::ModelConfig::find(is_folder(path) ? path : folder_of(path));
    if (!config) return;
    const std::vector<std::string> classes = config->architectures();
    if (std::ranges::find(classes, "ElectraForPreTraining") != classes.end()) {
      without = true;
      return;
    }
    const model::Family& family = model::choose_family(*config, "");
    const model::Design design = family.plan(model::FamilyConfig(*config)).design;
    without = design.mask != model::DefaultMask::kFull || design.streams != model::Streams::kOne ||
              design.token_dropout > 0;
  });
  return without && !unknown;
}

cli::ExitCode run(Options& o, cli::Session& session) {
  session.configure(o.common);
  surgery::CorrectionRequest& request = o.request;
  check_output(o.out, o.write.force, o.in_place, request.dry_run);
  request.in_place = o.in_place.in_place;
  request.wait_seconds = o.in_place.wait_seconds.value_or(0);
  if (o.tied != Tied::kAuto) {
    request.tied = o.tied == Tied::kUntie  ? surgery::TiedPolicy::kUntie
                   : o.tied == Tied::kKeep ? surgery::TiedPolicy::kKeep
                                           : surgery::TiedPolicy::kRefuse;
  }
  request.write = commands::write_options(o.write, o.common, session);
  const surgery::CorrectionReport report =
      surgery::correct_checkpoint(o.in, o.out.value_or(""), request);
  for (const std::string& note : report.notes) session.note(note);
  if (!report.learned_without_mask && learns_without_mask(o.in)) {
    session.note(
        fmt::format("{}: the model does not learn with [MASK] in its input, as the "
                    "correction supposes: no correction is due",
                    o.in));
  }
  if (request.inverse && report.head == surgery::HeadState::kOwn) {
    session.note(
        "the output head keeps its own copy of the table: 'embed-fix tie CHECKPOINT --drop -o "
        "OUTPUT' makes both one again");
  }
  session.detail(fmt::format("family: {}", report.family.empty() ? "unknown" : report.family));
  session.detail_time();
  report_of(report).print(session, o.common);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_mlm_correct(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  surgery::CorrectionRequest& r = o->request;
  const cli::AllowedRange share{0, 1};
  cli::Command& c = tool.subcommand(
      "mlm-correct", "replaces each input embedding by its average input in MLM pre-training");
  c.example("embed-fix mlm-correct bert-base/ -o bert-corrected/ --verify",
            "writes a new folder and proves that nothing else changed");
  c.example("embed-fix mlm-correct model.safetensors -o out.safetensors --mask-token 103",
            "corrects a file that has no tokenizer next to it");
  c.example("embed-fix mlm-correct bert-base/ --in-place --tied keep",
            "changes the checkpoint itself; the tied output head changes with the table");
  c.example("embed-fix mlm-correct bert-corrected/ -o bert-base/ --inverse",
            "undoes the correction");
  cli::add_checkpoint(c, o->in);
  add_output(c, o->out);
  c.option(
      "--rate", "R", r.rate, share,
      "share of tokens selected for prediction in pre-training [of the training record, or 0.15]");
  c.option("--mask", "M", r.mask, share,
           "share of selected tokens replaced by [MASK] [of the training record, or 0.8]");
  c.option("--keep", "K", r.keep, share,
           "share of selected tokens left unchanged [of the training record, or 0.1]");
  c.option("--random", "U", r.random, share,
           "share of selected tokens replaced by a random token [of the training record, or 0.1]");
  c.option("--mask-token", "TOKEN", r.mask_token,
           "the mask token, as token or id [from the tokenizer]");
  c.option("--special-token", "TOKEN", r.special_tokens,
           "a further row to leave unchanged, as token or id; may be repeated");
  c.choice("--special", r.special,
           {{"keep", surgery::SpecialPolicy::kKeep}, {"correct", surgery::SpecialPolicy::kCorrect}},
           "whether to keep or correct the rows of special tokens");
  c.option(
      "--mean", "KIND", r.mean,
      "the mean row, for random tokens: vocab (all rows), used (without [unusedN] and rows without "
      "a token) or freq:FILE (weighted by counts; lines of token or id, tab, count) [vocab]");
  c.choice("--tied", o->tied,
           {{"auto", Tied::kAuto},
            {"untie", Tied::kUntie},
            {"keep", Tied::kKeep},
            {"refuse", Tied::kRefuse}},
           "what to do with a tied output head; auto unties it (with --inverse: keeps it) and "
           "refuses an unknown family");
  add_tensor(c, r.tensor);
  c.flag("--inverse", r.inverse, "undoes a correction, up to rounding");
  c.flag("--again", r.again,
         "proceeds even if already corrected (with --inverse: even if not marked as corrected)");
  c.flag("-n,--dry-run", r.dry_run, "reports what would change and writes nothing");
  add_verify(c, r.verify);
  add_in_place(c, o->in_place);
  commands::add_write_flags(c, o->write);
  add_report_options(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
