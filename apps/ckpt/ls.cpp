// ckpt ls: the tensors of a checkpoint, and its metadata.
#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "store/checkpoint.hpp"

namespace masque::ckpt {

namespace {

struct Options {
  std::string checkpoint;
  cli::CommonOptions common;
};

/// All metadata of a file: those with types in their order, then texts that have none.
std::vector<store::TypedValue> metadata_of(const store::FileContent& content) {
  std::vector<store::TypedValue> values = content.typed;
  const auto is_there = [&](const std::string& key) {
    return std::ranges::find(content.typed, key, &store::TypedValue::key) != content.typed.end();
  };
  for (const auto& [key, text] : content.metadata) {
    if (!is_there(key)) values.push_back({key, "STRING", text, {}, {}});
  }
  return values;
}

/// With -v: a table of the metadata, and an empty line after it.
void list_metadata(const store::Checkpoint& checkpoint, const Options& o, cli::Session& session) {
  cli::Table table(session, o.common, {"key", "type", "value", "file"});
  for (const store::WeightsFile& file : checkpoint.files()) {
    for (const store::TypedValue& value : metadata_of(file.content))
      table.row({value.key, value.type,
                 value.json.empty() ? cli::Cell(value.text)
                                    : cli::Cell::raw(escape(value.text), value.json, value.text),
                 file.name});
  }
  table.finish();
  if (!o.common.json) session.print("\n");
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  if (o.common.csv && o.common.verbose)
    throw UsageError("--csv prints one table: it cannot be combined with -v, which prints two");
  const store::Checkpoint checkpoint = store::open_checkpoint(o.checkpoint);
  for (const std::string& note : checkpoint.notes()) session.note(note);
  if (o.common.verbose) list_metadata(checkpoint, o, session);
  cli::Table table(session, o.common, {"name", "dtype", "shape", "bytes", "file", "offset"});
  const auto list = [&](const auto& tensor, std::string_view type) {
    const std::string shape = shape_text(tensor.shape);
    table.row({tensor.name, type, cli::Cell::raw(shape, shape), tensor.bytes(),
               checkpoint.files()[tensor.file].name, tensor.begin});
  };
  auto opaque = checkpoint.opaque().begin();
  const auto list_opaque = [&](std::size_t file, std::uint64_t before) {
    for (; opaque != checkpoint.opaque().end() &&
           std::pair(opaque->file, opaque->begin) < std::pair(file, before);
         ++opaque)
      list(*opaque, opaque->type);
  };
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    list_opaque(tensor.file, tensor.begin);
    list(tensor, dtype_name(tensor.dtype));
  }
  list_opaque(checkpoint.files().size(), 0);
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_ls(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("ls", "lists the tensors: name, dtype, shape, bytes, file and offset");
  c.example("ckpt ls model.safetensors", "one line per tensor");
  c.example("ckpt ls bert-base/ --json | jq -r .name", "only the names");
  c.example("ckpt ls model.gguf -v", "the metadata first");
  cli::add_checkpoint(c, o->checkpoint);
  add_table(c, o->common);
  add_quiet(c, o->common);
  add_verbose(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
