// mask-viz identify: the expression of named masks that equals a matrix.
#include "mask/identify.hpp"

#include <memory>

#include <fmt/format.h>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "exchange/mask_file.hpp"

namespace masque::mask_viz {

namespace {

struct Options {
  std::string file;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const mask::Mask mask = mask::from_bits(exchange::read_mask(o.file));
  const mask::Identification found = mask::identify_mask(mask);
  const mask::MaskDifference& difference = found.difference;
  cli::Report report;
  report.add("mask", found.expression.text());
  report.add("exact", found.exact());
  report.add("queries", mask.lengths().queries);
  report.add("keys", mask.lengths().keys);
  report.add("visible_pairs", difference.both + difference.only_a);
  if (difference.first) {
    report.add("only_in_file", difference.only_a);
    report.add("only_in_mask", difference.only_b);
    report.add("first_query", difference.first->query);
    report.add("first_key", difference.first->key);
  }
  report.print(session, o.common);
  return found.exact() ? cli::ExitCode::kDone : cli::ExitCode::kFound;
}

}  // namespace

void declare_identify(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "identify",
      "finds the named mask that equals a matrix, or the nearest; exit 1 if none equals it");
  c.example("mask-viz identify mask.npy", "prints, for example, causal & document(3,5)");
  c.example("mask-viz show 'causal & tta' -n 9 --ascii | mask-viz identify -",
            "prints strict_causal");
  c.argument("FILE", o->file,
             "mask file: npy, npz, safetensors, PBM, TSV, or lines of # and .; FILE:NAME picks one "
             "array; - is standard input");
  add_report(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
