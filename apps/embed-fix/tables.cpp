// embed-fix tables: where a checkpoint keeps its vocabulary-sized and position tensors.
#include <memory>

#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "shared_options.hpp"
#include "table_argument.hpp"

namespace masque::embed_fix {

namespace {

struct Options {
  std::string checkpoint;
  std::optional<std::string> tensor;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const TableArgument a(o.checkpoint, o.tensor, session);
  cli::Table table(session, o.common, {"family", "role", "tensor", "dtype", "shape", "state"});
  for (const surgery::TableRole& role : surgery::table_roles(a.table)) {
    const std::string shape = role.tensor == nullptr ? "" : shape_text(role.tensor->shape);
    table.row({a.table.family == nullptr ? "" : a.table.family->name, role.role, role.name,
               role.tensor == nullptr ? "" : dtype_name(role.tensor->dtype),
               cli::Cell::raw(shape, shape.empty() ? "null" : shape), role.state});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_tables(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "tables",
      "lists the input, position and segment tables and the output head, and what is tied");
  c.example("embed-fix tables bert-base/", "prints one line per tensor");
  cli::add_checkpoint(c, o->checkpoint);
  add_tensor(c, o->tensor, "the input table");
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
