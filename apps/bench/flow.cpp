// bench flow: the time to follow information through layers.
#include "mask/flow.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "mask/expression.hpp"
#include "timing.hpp"

namespace masque::bench {

namespace {

struct Options {
  int length = 4096;
  int layers = 12;
  int repeats = 3;
  std::vector<std::string> masks;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  cli::Table table(session, o.common, {"mask", "length", "layers", "ms", "ms_min", "ms_max"});
  const std::vector<std::string> usual = {"causal", "tta", "window(128)", "random(0.01,1)"};
  for (const std::string& text : o.masks.empty() ? usual : o.masks) {
    const mask::Mask mask = mask::parse_mask(text).bind({o.length, o.length});
    mask::FlowRequest request;
    request.layers.assign(static_cast<std::size_t>(o.layers), mask);
    request.query = mask::QueryStart::kPosition;
    request.prediction = mask::Prediction::kSelf;
    request.threads = o.common.threads;
    const Timing timing = time_of(o.repeats, [&] { mask::follow_flow(request); });
    table.row({text, o.length, o.layers, timing.median, timing.least, timing.most});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_flow(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("flow", "time to follow information through layers");
  c.example("bench flow -n 4096 -L 12 -j 2", "four masks, with the search for a leak");
  c.option("-n,--length", "N", o->length, cli::AllowedRange{1, 1e6}, "positions");
  c.option("-L,--layers", "LAYERS", o->layers, cli::AllowedRange{1, 1e5}, "number of layers");
  add_repeats(c, o->repeats);
  c.option("--mask", "EXPR", o->masks, "mask to time, instead of the four; may be repeated");
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
