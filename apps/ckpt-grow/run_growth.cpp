#include "run_growth.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/comma_list.hpp"
#include "cli/shared_options.hpp"
#include "commands/open_model.hpp"

namespace masque::ckpt_grow {

namespace {

std::string sizes(const model::Design& design) {
  return fmt::format("{} layers, hidden size {}, {}, intermediate size {}",
                     design.num_hidden_layers, design.hidden_size,
                     counted(design.num_attention_heads, "head"), design.intermediate_size);
}

/// The rules that were used: "width equal, depth zero".
std::string rules(const grow::GrowthRequest& request) {
  std::string text;
  if (request.factor != 1)
    text += fmt::format("width {}", name_in(grow::width_rules(), request.width));
  if (request.layers > 0) {
    text += fmt::format("{}depth {}", text.empty() ? "" : ", ",
                        name_in(grow::depth_rules(), request.depth));
  }
  if (request.noise > 0) text += fmt::format(", noise {:g}", request.noise);
  return text;
}

std::string sameness_text(const grow::GrowthReport& report) {
  switch (report.sameness) {
    case grow::Sameness::kExact: return "same outputs";
    case grow::Sameness::kRounded: return "same outputs up to the rounding of stored weights";
    case grow::Sameness::kEpsilon:
      return fmt::format("same outputs up to the norms' epsilon, {:g}{}",
                         report.before.norm.epsilon,
                         report.rounded ? ", and the rounding of stored weights" : "");
    case grow::Sameness::kOther: return "different outputs";
  }
  return {};
}

/// The largest difference in f64 that a function may have which should be the same, as a share of
/// the largest value, or of 1 if that is more.
double tolerance(const grow::GrowthReport& report) {
  double most = 1e-12;
  if (report.rounded) most += 100 * report.unit_roundoff;
  if (report.sameness == grow::Sameness::kEpsilon) most += 100 * report.before.norm.epsilon;
  return most;
}

/// Whether the function is the same where it should be.
bool verified(const GrowthOptions& o, const grow::GrowthReport& report, cli::Session& session) {
  bool same = true;
  DifferenceTable table(session, o.common, true);
  for (const kernel::Precision precision : {kernel::Precision::kF64, kernel::Precision::kF32}) {
    commands::OpenModelOptions open;
    open.precision = precision;
    open.common = o.common;
    open.common.quiet = true;
    const commands::OpenedModel small = commands::open_model(open, o.in, false, session);
    const commands::OpenedModel large = commands::open_model(open, o.out, false, session);
    const grow::ModelDifference found =
        grow::compare_on_drawn_tokens(*small.model, *large.model, o.seed.value_or(0));
    table.add(found, precision);
    if (precision != kernel::Precision::kF64 || report.sameness == grow::Sameness::kOther) continue;
    const double most = tolerance(report);
    same = found.logits.value_or(0) <= most * std::max(1.0, found.largest_logit) &&
           found.states.value_or(0) <= most * std::max(1.0, found.largest_state);
  }
  table.finish();
  return same;
}

}  // namespace

void add_folders(cli::Command& command, GrowthOptions& options) {
  cli::add_checkpoint(command, options.in);
  command.option("-o,--output", "OUTPUT", options.out, "a new folder", cli::Need::kRequired);
}

void add_growth(cli::Command& command, GrowthOptions& options) {
  command.option("--noise", "S", options.request.noise, cli::AllowedRange{0, 10},
                 "adds normal noise to the matrices of added layers, or of all layers of a wider "
                 "model; standard deviation: S times each row's root mean square");
  cli::add_seed(command, options.seed, "seed for unequal, fpi, aki, --noise and --verify");
  command.flag("--verify", options.verify,
               "runs both models on random tokens, in f64 and f32, and prints the largest "
               "differences; exit code 1 if same outputs differ by more than rounding");
  commands::add_write_flags(command, options.write);
  cli::add_threads(command, options.common);
  cli::add_table(command, options.common);
  cli::add_quiet(command, options.common);
}

cli::ExitCode run_growth(const GrowthOptions& o, cli::Session& session) {
  session.configure(o.common);
  const bool draws = o.verify || o.request.noise > 0 ||
                     (o.request.factor != 1 && o.request.width != grow::WidthRule::kEqual);
  if (o.seed && !draws)
    throw UsageError(
        "--seed has no effect without random numbers: add unequal, fpi, aki, --noise or --verify");
  if ((o.common.json || o.common.csv) && !o.verify)
    throw UsageError(fmt::format("{} needs --verify: nothing else is printed",
                                 o.common.json ? "--json" : "--csv"));
  if (o.wider && o.request.factor <= 1)
    throw UsageError(fmt::format("--factor {}, expected more than 1", o.request.factor));
  if (o.deeper && !o.layers)
    throw UsageError("no --layers N, expected the number of layers of the larger model");
  grow::GrowthRequest request = o.request;
  request.layers = o.layers.value_or(0);
  request.seed = o.seed.value_or(0);
  grow::ModelGrowth growth(o.in, request);
  const grow::GrowthReport& report = growth.report();
  session.note(
      fmt::format("{}: {} -> {}", report.before.family, sizes(report.before), sizes(report.after)));
  session.note(fmt::format("{}: {}", rules(request), sameness_text(report)));
  for (const std::string& note : report.notes) session.note(note);
  const auto options = commands::write_options(o.write, o.common, session);
  const std::vector<std::string> notes = growth.write(o.out, options);
  session.say_if_interrupted(
      fmt::format("{}: written{}", o.out, o.verify ? ", but not verified" : ""));
  for (const std::string& note : notes) session.note(note);
  session.note(fmt::format("{} tensors grown, {} added, {} unchanged", report.grown, report.added,
                           report.kept));
  session.detail_time();
  if (o.verify && !verified(o, report, session)) return cli::ExitCode::kFound;
  return cli::ExitCode::kDone;
}

namespace {

std::vector<std::string> columns(bool precisions) {
  std::vector<std::string> names = {"what", "largest_difference", "largest_value"};
  if (precisions) names.insert(names.begin(), "precision");
  return names;
}

cli::Cell short_cell(double value) {
  return cli::Cell::raw(fmt::format("{:.3g}", value), cli::Cell(value).json());
}

}  // namespace

DifferenceTable::DifferenceTable(cli::Session& session, const cli::CommonOptions& options,
                                 bool precisions)
    : table_(session, options, columns(precisions)), precisions_(precisions) {}

void DifferenceTable::add(const grow::ModelDifference& found, kernel::Precision precision) {
  const auto row = [&](const char* what, const std::optional<double>& difference, double largest) {
    if (!difference) return;
    std::vector<cli::Cell> cells = {what, short_cell(*difference), short_cell(largest)};
    if (precisions_) cells.insert(cells.begin(), cli::Cell(kernel::precision_name(precision)));
    table_.row(cells);
  };
  row("logits", found.logits, found.largest_logit);
  row("states", found.states, found.largest_state);
}

}  // namespace masque::ckpt_grow
