// ckpt stats: moments of every tensor.
#include <memory>

#include "base/escape.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "store/tensor_stats.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::string checkpoint;
  std::vector<std::string> tensors;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const store::Checkpoint checkpoint = store::open_decoded(o.checkpoint);
  if (checkpoint.is_decoded()) session.note(checkpoint.decoded_note());
  std::vector<const store::TensorInfo*> chosen;
  for (const std::string& name : o.tensors) chosen.push_back(&checkpoint.get(name));
  if (chosen.empty()) {
    for (const store::TensorInfo& tensor : checkpoint.tensors()) chosen.push_back(&tensor);
    for (const store::OpaqueTensor& tensor : checkpoint.opaque())
      session.note(escape(tensor.name) + ": skipped, values of type " + escape(tensor.type) +
                   " cannot be read");
  }
  cli::Table table(session, o.common,
                   {"name", "dtype", "shape", "count", "min", "max", "mean", "std", "norm", "zeros",
                    "nan", "inf"});
  for (const store::TensorInfo* tensor : chosen) {
    const std::string shape = shape_text(tensor->shape);
    if (is_packed(tensor->dtype)) {
      session.note(escape(tensor->name) + ": skipped, values of packed types cannot be read");
      continue;
    }
    const store::TensorStats s = store::tensor_stats(checkpoint, *tensor, o.common.threads);
    table.row({tensor->name, dtype_name(tensor->dtype), cli::Cell::raw(shape, shape), s.count,
               s.minimum, s.maximum, s.mean, s.deviation, s.norm, s.zeros, s.nans, s.infinities});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_stats(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "stats", "prints statistics of tensors: minimum, maximum, mean, standard deviation, norm …");
  c.example("ckpt stats model.safetensors", "every tensor");
  c.example("ckpt stats bert-base/ --tensor bert.pooler.dense.weight --json", "one tensor");
  cli::add_checkpoint(c, o->checkpoint);
  c.option("--tensor", "NAME", o->tensors, "only this tensor; may be repeated");
  add_threads(c, o->common);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
