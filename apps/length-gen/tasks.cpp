// length-gen tasks: what there is to learn besides texts.
#include <algorithm>
#include <memory>
#include <string>

#include "commands.hpp"
#include "task/task.hpp"

namespace masque::length_gen {

namespace {

struct Options {
  std::int64_t length = 5;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  cli::Table table(session, o.common,
                   {"task", "parameters", "length", "chance", "example", "targets", "about"});
  for (const std::string& name : task::task_names()) {
    const auto one = task::parse_task(name);
    const Index length = std::clamp<Index>(o.length, one->shortest(), one->longest());
    const task::TaskExample example = one->example(length, RandomStream(o.common.seed, "shown"));
    std::string ids, targets;
    for (std::size_t i = 0; i < example.ids.size(); ++i) {
      const TokenId target = example.targets[i];
      ids += (i > 0 ? " " : "") + one->token_text(example.ids[i]);
      targets += (i > 0 ? " " : "") +
                 (target == task::kNoTarget ? std::string("_") : one->token_text(target));
    }
    table.row({name, task::task_parameters(name), length, one->chance(length), ids, targets,
               one->info()});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_tasks(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("tasks", "lists the synthetic tasks, with an example of each");
  c.example("length-gen tasks --length 4", "name, parameters, chance, tokens, targets");
  c.option("--length", "N", o->length, cli::AllowedRange{1, 1000},
           "length of the examples, in each task's own unit");
  cli::add_seed(c, o->common);
  cli::add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::length_gen
