// mask-viz list: every named mask.
#include <memory>

#include <fmt/format.h>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "mask/zoo.hpp"

namespace masque::mask_viz {

namespace {

std::vector<std::string> parameters_of(const mask::MaskKind& kind) {
  std::vector<std::string> out;
  for (const mask::MaskParameter& parameter : kind.parameters) {
    std::string text(parameter.name);
    if (parameter.kind == mask::MaskParameterKind::kList) text += ",…";
    if (parameter.fallback && parameter.kind != mask::MaskParameterKind::kList) {
      text += fmt::format("={}", *parameter.fallback);
    }
    out.push_back(std::move(text));
  }
  return out;
}

cli::ExitCode run(const cli::CommonOptions& o, cli::Session& session) {
  session.configure(o);
  cli::Table table(session, o, {"name", "parameters", "visible", "pairs", "example", "origin"});
  for (const mask::MaskKind* kind : mask::mask_kinds()) {
    table.row({kind->name, cli::list_cell(parameters_of(*kind)), kind->formula, kind->pairs,
               kind->example, kind->origin});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_list(cli::Command& tool) {
  auto o = std::make_shared<cli::CommonOptions>();
  cli::Command& c =
      tool.subcommand("list", "lists every named mask with its parameters, formula and origin");
  c.example("mask-viz list", "one line per mask");
  c.example("mask-viz list --json | jq -r .name", "the names alone");
  add_table(c, *o);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
