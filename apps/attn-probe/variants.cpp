// attn-probe variants: what the registries hold.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "nn/variant.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  std::optional<std::string> kind;
  cli::CommonOptions common;
};

/// The options of lm-train for a variant.
std::string options_of(const nn::VariantInfo& variant) {
  std::string text;
  for (auto [name, value] : variant.use) {
    std::ranges::replace(name, '_', '-');
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const std::vector<nn::VariantInfo> all = nn::variants();
  const auto known = [&](const nn::VariantInfo& v) { return v.kind == *o.kind; };
  if (o.kind && std::none_of(all.begin(), all.end(), known)) {
    std::set<std::string_view> kinds;
    for (const nn::VariantInfo& v : all) kinds.insert(v.kind);
    throw UsageError(fmt::format("--kind: found '{}', expected one of {}", escape(*o.kind),
                                 fmt::join(kinds, " ")));
  }
  cli::Table table(session, o.common,
                   {"kind", "name", "parameters", "masks", "exact", "cost", "source", "use"});
  for (const nn::VariantInfo& v : all) {
    if (o.kind && v.kind != *o.kind) continue;
    table.row({v.kind, v.name, v.parameters, v.masks, v.exact, v.cost, v.source, options_of(v)});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_variants(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("variants", "lists every attention variant in the library");
  c.example("attn-probe variants --kind position",
            "every position scheme: parameters, masks, cost, source, and its lm-train options");
  c.option("--kind", "KIND", o->kind,
           "only one kind: normalizer, position, mixer, structure or evaluation");
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::attn_probe
