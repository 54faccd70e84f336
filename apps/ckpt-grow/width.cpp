// ckpt-grow width: more units in every layer.
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "commands/write_flags.hpp"
#include "grow/grow_width.hpp"

namespace masque::ckpt_grow {

namespace {

struct Options {
  std::string in, out;
  std::int64_t factor = 2;
  grow::WidthRule rule = grow::WidthRule::kEqual;
  std::optional<std::uint64_t> seed;
  commands::WriteFlags write;
  cli::CommonOptions common;
};

std::string sizes(const model::Design& design) {
  return fmt::format("{} wide, {} head{}, {} intermediate", design.hidden_size,
                     design.num_attention_heads, design.num_attention_heads == 1 ? "" : "s",
                     design.intermediate_size);
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  if (o.rule == grow::WidthRule::kEqual && o.seed)
    throw UsageError("--seed: --how equal draws nothing, expected it with --how unequal");
  grow::WidthRequest request;
  request.factor = o.factor;
  request.rule = o.rule;
  request.seed = o.seed.value_or(0);
  request.write = commands::write_options(o.write, o.common, session);
  const grow::WidthReport report = grow::grow_width(o.in, o.out, request);
  for (const std::string& note : report.notes) session.note(note);
  session.note(
      fmt::format("{}: {} -> {}", report.before.family, sizes(report.before), sizes(report.after)));
  session.note(fmt::format("{} tensors grown, {} as they were; the function is the same{}",
                           report.grown, report.kept,
                           report.exact ? "" : " but for the rounding of what is stored"));
  session.detail_time();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_width(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("width", "hidden size, heads and intermediate size, times K");
  c.example("ckpt-grow width bert-base-uncased/ -o wide/ --factor 2", "the function stays exactly");
  c.example("ckpt-grow width gpt2/ -o wide/ --how unequal --seed 1",
            "copies that training can part");
  cli::add_checkpoint(c, o->in);
  c.option("-o,--output", "OUTPUT", o->out, "a new folder", cli::Need::kRequired);
  c.option("--factor", "K", o->factor, cli::AllowedRange{2, 64}, "a whole number");
  c.choice("--how", o->rule, grow::width_rules(),
           "how copies share the weight of what they are copies of");
  cli::add_seed(c, o->seed, "of the shares of --how unequal");
  commands::add_write_flags(c, o->write);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt_grow
