// ckpt hash: digests of the tensors and of the whole.
#include <memory>

#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "store/inspect/compare_checkpoints.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::string checkpoint;
  store::HashKind kind = store::HashKind::kSha256;
  bool total = false;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const store::Checkpoint checkpoint = store::open_checkpoint(o.checkpoint);
  const store::CheckpointHash hash =
      store::hash_checkpoint(checkpoint, o.kind, o.common.threads, session.progress("hashing"));
  session.clear_progress();
  if (o.total) {
    if (o.common.json || o.common.csv) {
      cli::Report report;
      report.add("hash", hash.total);
      report.print(session, o.common);
    } else {
      session.print(hash.total + "\n");
    }
    return cli::ExitCode::kDone;
  }
  cli::Table table(session, o.common, {"hash", "name", "dtype", "shape"});
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const store::TensorInfo& tensor = checkpoint.tensors()[i];
    const std::string shape = shape_text(tensor.shape);
    table.row(
        {hash.tensors[i], tensor.name, dtype_name(tensor.dtype), cli::Cell::raw(shape, shape)});
  }
  for (std::size_t i = 0; i < checkpoint.opaque().size(); ++i) {
    const store::OpaqueTensor& tensor = checkpoint.opaque()[i];
    const std::string shape = shape_text(tensor.shape);
    table.row({hash.tensors[checkpoint.tensors().size() + i], tensor.name, tensor.type,
               cli::Cell::raw(shape, shape)});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_hash(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("hash", "prints a digest of each tensor, or of the whole checkpoint");
  c.example("ckpt hash bert-base/ --total",
            "one digest, independent of order, shards and metadata");
  cli::add_checkpoint(c, o->checkpoint);
  c.choice("--algorithm", o->kind,
           {{"sha256", store::HashKind::kSha256}, {"xxh3", store::HashKind::kXxh3}},
           "SHA-256, or XXH3-128 (faster, but not cryptographic)");
  c.flag("--total", o->total, "prints only the digest of the whole checkpoint");
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
