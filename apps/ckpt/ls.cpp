// ckpt ls: the tensors of a checkpoint.
#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "store/checkpoint.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::string checkpoint;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const Checkpoint checkpoint = open_checkpoint(o.checkpoint);
  for (const std::string& note : checkpoint.notes()) session.note(note);
  cli::Table table(session, o.common, {"name", "dtype", "shape", "bytes", "file", "offset"});
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const std::string shape = shape_text(tensor.shape);
    table.row({tensor.name, dtype_name(tensor.dtype), cli::Cell::raw(shape, shape), tensor.bytes(),
               checkpoint.files()[tensor.file].name, tensor.begin});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_ls(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("ls", "lists the tensors: name, dtype, shape, bytes, place");
  c.example("ckpt ls model.safetensors", "one line a tensor");
  c.example("ckpt ls bert-base/ --json | jq -r .name", "names only");
  c.argument("CHECKPOINT", o->checkpoint, "a file, a folder or an index");
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
