// ckpt merge-adapter: a LoRA adapter added to its base.
#include "surgery/adapter/merge_adapter.hpp"

#include <memory>

#include <fmt/format.h>

#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "commands/write_flags.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::string base;
  std::string adapter;
  std::string out;
  commands::WriteFlags write;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const surgery::MergeReport report = surgery::merge_adapter(
      o.base, o.adapter, o.out, commands::write_options(o.write, o.common, session));
  for (const std::string& note : report.notes) session.note(note);
  session.note(
      fmt::format("{} weights changed, {} tensors replaced", report.merged, report.replaced));
  session.detail_time();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_merge_adapter(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("merge-adapter", "adds a LoRA adapter of PEFT to its base");
  c.example("ckpt merge-adapter gpt2/ adapter/ -o merged/",
            "W + (alpha / r) B A for every weight of the adapter");
  c.argument("BASE", o->base, "the checkpoint that the adapter was trained for");
  c.argument("ADAPTER", o->adapter,
             "a folder with adapter_config.json and adapter_model.safetensors");
  c.option("-o,--output", "OUTPUT", o->out, "a file for a file, a new folder for a folder",
           cli::Need::kRequired);
  commands::add_write_flags(c, o->write);
  add_threads(c, o->common);
  add_quiet(c, o->common);
  add_verbose(c, o->common);
  c.writes({"output"});
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
