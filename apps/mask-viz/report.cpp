// mask-viz report: a mask in numbers.
#include "mask/report.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "positions.hpp"

namespace masque::mask_viz {

namespace {

struct Options {
  std::string mask;
  PositionOptions positions;
  int block = 128;
  cli::CommonOptions common;
};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const auto record = read_record_mask(o.mask, o.positions.tokenizer, session);
  const mask::MaskExpression expression = record
                                              ? mask::parse_mask(record->expression)
                                              : mask::parse_mask(o.mask, mask::MaskFiles::kAllowed);
  const Positions positions = positions_of(o.positions, {expression}, session, record);
  const mask::MaskReport r = mask::report_mask(positions.bind(expression), o.block);
  cli::Report report;
  report.add("mask", expression.text());
  report.add("queries", r.lengths.queries);
  report.add("keys", r.lengths.keys);
  report.add("visible_pairs", r.visible_pairs);
  report.add("density", r.density());
  report.add("empty_rows", r.empty_rows);
  report.add("unread_keys", r.unread_keys);
  report.add("self_visible", r.self_visible);
  report.add("symmetric", r.symmetric);
  report.add("causal", r.causal);
  report.add("strictly_causal", r.strictly_causal);
  report.add("farthest_back", r.farthest_back);
  report.add("farthest_ahead", r.farthest_ahead);
  report.add("n_min", r.n_min);
  report.add("n_mean", r.n_mean);
  report.add("n_max", r.n_max);
  report.add("block_size", r.blocks.size);
  report.add("empty_blocks", r.blocks.empty);
  report.add("partial_blocks", r.blocks.partial);
  report.add("full_blocks", r.blocks.full);
  report.add("rounding_adds", r.blocks.kept_cells - r.visible_pairs);
  report.add("flop_saving", r.cells() == 0 ? 0 : 1 - share(r.blocks.kept_cells, r.cells()));
  report.add("flop_saving_exact", r.cells() == 0 ? 0 : 1 - r.density());
  report.add("dense_bytes", r.cells());
  report.add("block_map_bytes", r.block_map_bytes);
  report.print(session, o.common);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_report(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("report", "measures a mask: visible pairs, rows, blocks, memory");
  c.example("mask-viz report 'causal & window(256)' -n 1000000",
            "a mask of 10^12 cells, without a look at every cell");
  c.example("mask-viz report 'document(300,212)' --block 64 --json", "counts blocks of 64 × 64");
  c.argument("EXPR", o->mask,
             "mask expression, such as 'causal | prefix(5)'; for names see mask-viz list; - reads "
             "a record from standard input");
  add_lengths(c, o->positions);
  add_record(c, o->positions);
  c.option("-b,--block", "B", o->block, cli::AllowedRange{1, 1 << 30}, "side of a block in cells");
  add_report(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
