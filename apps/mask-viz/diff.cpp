// mask-viz diff: where two masks differ.
#include <memory>

#include <fmt/format.h>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "draw/figure_file.hpp"
#include "mask/compare.hpp"
#include "output.hpp"
#include "positions.hpp"

namespace masque::mask_viz {

namespace {

struct Options {
  std::string a;
  std::string b;
  PositionOptions positions;
  std::optional<std::string> output;
  cli::CommonOptions common;
};

cli::Report report_of(const mask::MaskDifference& difference, const mask::Mask& a) {
  cli::Report report;
  report.add("equal", difference.equal());
  report.add("both", difference.both);
  report.add("only_a", difference.only_a);
  report.add("only_b", difference.only_b);
  if (difference.first) {
    const auto [query, key] = *difference.first;
    report.add("first_query", query);
    report.add("first_key", key);
    report.add("first_only_in", a.allows(query, key) ? "a" : "b");
  }
  return report;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const mask::MaskExpression a = mask::parse_mask(o.a, mask::MaskFiles::kAllowed);
  const mask::MaskExpression b = mask::parse_mask(o.b, mask::MaskFiles::kAllowed);
  const Positions positions = positions_of(o.positions, {a, b}, session);
  const mask::Mask mask_a = positions.bind(a);
  const mask::Mask mask_b = positions.bind(b);
  const mask::MaskDifference difference = mask::compare_masks(mask_a, mask_b);
  draw::MaskFigureRequest picture{.title = fmt::format("{} and {}", a.text(), b.text()),
                                  .labels = positions.labels};
  if (o.output) {
    draw::write_picture(*o.output, difference_figure(mask_a, mask_b, a.text(), b.text(), picture));
  }
  report_of(difference, mask_a).print(session, o.common);
  if (!o.output && !o.common.json && !o.common.csv && !o.common.quiet && !difference.equal()) {
    print_figure(session, 3, [&](Index max_cells) {
      picture.max_cells = max_cells;
      return difference_figure(mask_a, mask_b, a.text(), b.text(), picture);
    });
  }
  return difference.equal() ? cli::ExitCode::kDone : cli::ExitCode::kFound;
}

}  // namespace

void declare_diff(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("diff", "shows where two masks differ; exit 1 if they do");
  c.example("mask-viz diff 'causal | prefix(5)' 'explicit(mine.npy)'",
            "compares a mask from another program with the intended one");
  c.argument("A", o->a, "the first mask, an expression");
  c.argument("B", o->b, "the second mask");
  add_lengths(c, o->positions);
  add_labels(c, o->positions);
  c.option("-o,--output", "FILE", o->output,
           "write the picture to a file (.svg .png) instead of printing it");
  add_report(c, o->common);
  c.flag("-q,--quiet", o->common.quiet, "print no picture");
  add_color(c, o->common);
  c.writes({"output"});
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
