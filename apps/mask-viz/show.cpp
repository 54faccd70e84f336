// mask-viz show: a mask in the terminal or in a file.
#include <memory>

#include "base/error.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "exchange/mask_file.hpp"
#include "output.hpp"
#include "positions.hpp"

namespace masque::mask_viz {

namespace {

struct Options {
  std::string mask;
  PositionOptions positions;
  std::optional<std::string> output;
  std::optional<std::string> convention;
  bool ascii = false;
  bool force = false;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const auto record = read_record_mask(o.mask, o.positions.tokenizer, session);
  const mask::MaskExpression expression = record
                                              ? mask::parse_mask(record->expression)
                                              : mask::parse_mask(o.mask, mask::MaskFiles::kAllowed);
  const Positions positions = positions_of(o.positions, {expression}, session, record);
  const mask::Mask mask = positions.bind(expression);
  draw::MaskFigureRequest picture{.title = expression.text(), .labels = positions.labels};
  if (o.convention) {
    if (!o.output) throw UsageError("--as needs -o FILE");
    write_convention(*o.output, mask, convention_of(*o.convention), expression.text(), o.force,
                     session);
  } else if (o.output) {
    write_mask_or_picture(*o.output, mask, picture, o.force);
  } else if (o.ascii) {
    exchange::check_dense_size("standard output", mask.lengths(), 8, o.force);
    exchange::print_mask_text(mask, [&](std::string_view rows) { session.print(rows); });
  } else {
    print_figure(session, 1, [&](Index max_cells) {
      picture.max_cells = max_cells;
      return mask_figure(mask, picture);
    });
  }
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_show(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("show", "draws a mask in the terminal, or writes it to a file");
  c.example("mask-viz show 'causal & window(3)' --text 'the cat sat on the mat'",
            "draws queries as rows and keys as columns, labelled with the words");
  c.example("mask-viz show 'causal & window(256)' -n 1000000 -o window.svg",
            "draws a zoomed-out picture in which thin diagonals stay visible");
  c.example("mask-viz show 'document(300,212)' -o ends.npy --as cu_seqlens",
            "writes the boundaries that kernels for packed documents read");
  c.example("mask-viz show 'unilm(6,10)' --ascii", "prints # and . only, for other programs");
  c.argument("EXPR", o->mask,
             "mask expression, such as 'causal | prefix(5)'; for names see mask-viz list; - reads "
             "a record from standard input");
  add_lengths(c, o->positions);
  add_record(c, o->positions);
  add_labels(c, o->positions);
  c.option("-o,--output", "FILE", o->output, kOutputHelp);
  c.option("--as", "CONVENTION", o->convention,
           "convention of the file that -o writes; see mask-viz convert");
  c.flag("--ascii", o->ascii, "print # and . only, one query per line");
  add_large_output(c, o->force);
  add_color(c, o->common);
  c.writes({"output"});
  c.read_only_if(
      {"ascii"}, [o] { return !o->output; }, "with -o");
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
