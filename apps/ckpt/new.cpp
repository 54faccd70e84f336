// ckpt new: a random checkpoint for a config.
#include <memory>

#include <fmt/format.h>

#include "base/string/comma_list.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "commands/write_flags.hpp"
#include "model/checkpoint/new_checkpoint.hpp"
#include "store/sharding.hpp"
#include "write_options.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::string config;
  std::string out;
  std::string dtype = "F32";
  std::optional<std::string> shard_size;
  std::optional<std::string> family;
  commands::WriteFlags write;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  model::NewCheckpointRequest request;
  request.family = o.family;
  request.dtype = parse_dtype(o.dtype);
  request.seed = o.common.seed;
  if (o.shard_size) request.shard_bytes = store::parse_byte_size(*o.shard_size);
  request.write = commands::write_options(o.write, o.common, session);
  const model::NewCheckpointResult made = model::new_checkpoint(o.config, o.out, request);
  for (const std::string& note : made.notes) session.note(note);
  session.note(fmt::format("{}: {} tensors, {} parameters in {}", made.family, made.tensors,
                           made.parameters, counted(made.files, "file")));
  session.detail_time();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_new(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("new", "writes a randomly initialised checkpoint for a config.json");
  c.example("ckpt new config.json -o random-bert/ --seed 1",
            "all tensors of the language model, initialised as in transformers");
  c.example("ckpt new config.json -o m && lm-train text --init m -o trained --tokenizer vocab.txt",
            "creates a model and trains it");
  c.argument("CONFIG", o->config, "config.json of a supported family");
  c.option("-o,--output", "DIR", o->out, "a new folder", cli::Need::kRequired);
  add_dtype(c, o->dtype);
  add_shard_size(c, o->shard_size);
  c.option("--family", "NAME", o->family, "model_type for a config that has none");
  cli::add_force(c, o->write.force);
  add_seed(c, o->common);
  add_threads(c, o->common);
  add_quiet(c, o->common);
  add_verbose(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
