// ckpt rename: other names for tensors.
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "cli/substitution.hpp"
#include "commands.hpp"
#include "commands/write_flags.hpp"
#include "surgery/names/rename_tensors.hpp"

namespace masque::ckpt {

namespace {

constexpr std::uint64_t kMostMapBytes = 256 << 20;

struct Options {
  std::string in;
  std::vector<std::string> changes;
  std::string out;
  std::optional<std::string> map;
  commands::WriteFlags write;
  cli::CommonOptions common;
};

/// Applies a substitution to every name as it is after the changes before.
void substitute(const store::Checkpoint& checkpoint, const std::string& change,
                store::NameMap& names) {
  const cli::Substitution substitution(change);
  bool found = false;
  const auto rename = [&](const std::string& name) {
    const auto before = names.find(name);
    auto now = substitution.apply(before == names.end() ? name : before->second.name);
    if (!now) return;
    found = true;
    names[name] = {*std::move(now)};
  };
  for (const store::TensorInfo& tensor : checkpoint.tensors()) rename(tensor.name);
  for (const store::OpaqueTensor& tensor : checkpoint.opaque()) rename(tensor.name);
  if (!found)
    throw InputError(checkpoint.path(), fmt::format("no name matches {}", escape(change)));
}

/// The change OLD=NEW.
void add(const std::string& change, store::NameMap& names) {
  const auto names_of_change = split_in_two(change, '=');
  if (!names_of_change) {
    throw UsageError(
        fmt::format("'{}': expected OLD=NEW (--map takes names with a '=')", escape(change)));
  }
  const std::string old(names_of_change->first);
  if (!names.emplace(old, store::NewName{std::string(names_of_change->second)}).second)
    throw UsageError(fmt::format("'{}': a second new name for '{}'", escape(change), escape(old)));
}

store::NameMap names_of(const store::Checkpoint& checkpoint, const Options& o) {
  store::NameMap names;
  if (o.map) names = surgery::parse_name_map(read_text(*o.map, kMostMapBytes), *o.map);
  for (const std::string& change : o.changes) {
    if (!cli::Substitution::is_one(change)) add(change, names);
  }
  for (const std::string& change : o.changes) {
    if (cli::Substitution::is_one(change)) substitute(checkpoint, change, names);
  }
  if (names.empty()) throw UsageError("no new name, expected OLD=NEW or --map FILE");
  return names;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const store::Checkpoint checkpoint = store::open_checkpoint(o.in);
  const store::NameMap names = names_of(checkpoint, o);
  const store::WriteOptions options = commands::write_options(o.write, o.common, session);
  for (const std::string& note : surgery::rename_tensors(checkpoint, names, o.out, options))
    session.note(note);
  std::uint64_t changed = 0;
  for (const auto& [old, now] : names) changed += old != now.name ? 1U : 0U;
  session.note(fmt::format("{} of {} names changed", changed,
                           checkpoint.tensors().size() + checkpoint.opaque().size()));
  session.detail_time();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_rename(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("rename", "renames tensors");
  c.example("ckpt rename m.safetensors -o out.safetensors head.weight=lm_head.weight",
            "one tensor");
  c.example("ckpt rename model/ -o out/ 's/^encoder\\./bert.encoder./'",
            "all names that a regular expression matches");
  c.example("ckpt rename model/ -o out/ --map names.tsv", "a file of lines OLD, tab, NEW");
  cli::add_checkpoint(c, o->in);
  c.arguments("CHANGE", o->changes,
              "OLD=NEW, or s/PATTERN/REPLACEMENT/ (Perl syntax; $1 is the first group)",
              cli::Need::kOptional);
  c.option("-o,--output", "OUTPUT", o->out, "a file for a file, a new folder for a folder",
           cli::Need::kRequired);
  c.option("--map", "FILE", o->map,
           "reads changes from a file of lines OLD, tab, NEW; -: standard input");
  commands::add_write_flags(c, o->write);
  add_threads(c, o->common);
  add_quiet(c, o->common);
  add_verbose(c, o->common);
  c.writes({"output"});
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
