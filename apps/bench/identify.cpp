// bench identify: the time to name a matrix.
#include "mask/identify.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "mask/bit_matrix.hpp"
#include "timing.hpp"

namespace masque::bench {

namespace {

struct Options {
  int length = 64;
  int repeats = 5;
  std::vector<std::string> masks;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  cli::Table table(session, o.common, {"mask", "found", "exact", "ms", "ms_min", "ms_max"});
  // The last ones equal nothing, so that all pairs are tried.
  const std::vector<std::string> usual = {"tta",
                                          "causal & window(9)",
                                          "sinks(4,8) | fixed(8,2)",
                                          "(causal | prefix(7)) & pad(60)",
                                          "random(0.02,1)",
                                          "random(0.5,1)",
                                          "random(0.98,1)",
                                          "full & ~random(0.001,1)"};
  for (const std::string& text : o.masks.empty() ? usual : o.masks) {
    const mask::Mask mask =
        mask::from_bits(mask::to_bits(mask::parse_mask(text).bind({o.length, o.length})));
    const mask::Identification found = mask::identify_mask(mask);
    const Timing timing = time_of(o.repeats, [&] { mask::identify_mask(mask); });
    table.row(
        {text, found.expression.text(), found.exact(), timing.median, timing.least, timing.most});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_identify(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("identify", "time to find the name of a mask matrix");
  c.example("bench identify", "masks that have a name, and some that have none");
  c.option("-n,--length", "N", o->length, cli::AllowedRange{1, 1e5}, "queries and keys");
  add_repeats(c, o->repeats);
  c.option("--mask", "EXPR", o->masks, "mask to time, instead of the list; may be repeated");
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
