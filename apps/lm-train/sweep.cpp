// lm-train sweep: products of options and seeds as commands that depend on nothing but their line.
#include "sweep.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/name_list.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "budget.hpp"
#include "cli/option_values.hpp"
#include "commands/cell_commands.hpp"
#include "mask/expression.hpp"
#include "records/selection.hpp"
#include "sweep_list.hpp"
#include "text/tokenizer.hpp"
#include "train/data/corpus.hpp"
#include "train/data/objective.hpp"
#include "train/network/recipe.hpp"
#include "train_options.hpp"

namespace masque::lm_train {

namespace {

constexpr std::size_t kMostCells = 1'000'000;

struct Varied {
  std::string key;
  std::vector<std::string> values;
};

struct SweepOptions : TrainOptions {
  std::vector<Varied> varied;
  std::int64_t seeds = 1;
  commands::CellOptions cells;
};

/// The option or argument with this key in an experiment file; nullptr if there is none.
const cli::Entry* entry_of(const std::vector<cli::Entry>& entries, const std::string& key) {
  const auto found = std::ranges::find(entries, key, [](const auto& e) { return cli::key_of(e); });
  return found == entries.end() ? nullptr : &*found;
}

/// A run's command, to check what it would be given.
struct RunCommand {
  RunCommand() {
    declare_train_options(command, options, {});
    command.action([](cli::Session&) { return cli::ExitCode::kDone; });
  }

  TrainOptions options;
  cli::Command command{"lm-train", ""};
};

/// "(3*rope, none)" → "3*rope, none": parentheses around a value keep its commas together.
std::string bare(const std::string& value) {
  if (!value.starts_with('(') || !value.ends_with(')')) return value;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < value.size(); ++i) {
    depth += value[i] == '(' ? 1 : value[i] == ')' ? -1 : 0;
    if (depth == 0) return value;
  }
  return value.substr(1, value.size() - 2);
}

/// "learning-rate=0.001,0.002". Throws UsageError.
Varied parse_varied(const std::string& text) {
  const auto [key, list] = split_at_first(text, '=');
  const auto refuse = [&](std::string_view problem) {
    throw UsageError(fmt::format("{}: {}", field("vary"), problem));
  };
  if (!list) refuse(fmt::format("found '{}', expected KEY=VALUE,VALUE,…", escape(text)));
  Varied varied{std::string(trim(key)), {}};
  for (const std::string_view fixed : {"output", "resume", "timing", "seed"}) {
    if (varied.key != fixed) continue;
    refuse(fixed == "seed" ? fmt::format("found seed, expected {} N", field("seeds"))
                           : fmt::format("found {}, expected an option that changes a run", fixed));
  }
  RunCommand run;
  const std::vector<cli::Entry> entries = run.command.entries();
  const cli::Entry* entry = entry_of(entries, varied.key);
  if (entry == nullptr) refuse(fmt::format("no option '{}'", escape(varied.key)));
  for (const std::string& word : split_names("vary", *list)) {
    const std::string value = bare(word);
    if (escape(value) != value)
      refuse(fmt::format("{}: found '{}', expected plain text", varied.key, escape(value)));
    if (entry->is_flag() && value != "true" && value != "false")
      refuse(fmt::format("{}: found '{}', expected true or false", varied.key, value));
    if (const auto problem = usage_error_message([&] { entry->set(value); })) refuse(*problem);
    varied.values.push_back(value);
  }
  return varied;
}

/// The values of every run, the last option's fastest.
std::vector<std::vector<std::string>> product(const std::vector<Varied>& varied) {
  std::vector<std::vector<std::string>> all{{}};
  for (const Varied& one : varied) {
    std::vector<std::vector<std::string>> more;
    for (const std::vector<std::string>& values : all) {
      throw_if_interrupted();
      for (const std::string& value : one.values) {
        more.push_back(values);
        more.back().push_back(value);
      }
    }
    all = std::move(more);
    if (all.size() > kMostCells)
      throw UsageError(fmt::format("{}: expected at most {} runs", field("vary"), kMostCells));
  }
  return all;
}

SweepList list_of(const SweepOptions& o) {
  SweepList list;
  for (const Varied& one : o.varied) {
    if (std::ranges::find(list.keys, one.key) != list.keys.end())
      throw UsageError(fmt::format("{}: found {} twice, expected all of its values in one list",
                                   field("vary"), one.key));
    list.keys.push_back(one.key);
  }
  const auto all = product(o.varied);
  if (all.size() * static_cast<std::size_t>(o.seeds) > kMostCells)
    throw UsageError(fmt::format("{}: expected at most {} runs", field("seeds"), kMostCells));
  std::map<std::string, std::vector<std::string>> names;
  for (const std::vector<std::string>& values : all) {
    for (std::int64_t k = 0; k < o.seeds; ++k) {
      throw_if_interrupted();
      const std::uint64_t seed = o.common.seed + static_cast<std::uint64_t>(k);
      const std::string name = cell_name(list.keys, values, seed);
      const auto [other, is_new] = names.emplace(name, values);
      if (!is_new) {
        throw UsageError(fmt::format("{}: two runs would write {}: with '{}' and with '{}'",
                                     field("vary"), join(o.output, name),
                                     fmt::join(other->second, " "), fmt::join(values, " ")));
      }
      list.cells.push_back({name, values, seed});
    }
  }
  return list;
}

/// The words of an option, or of the argument TEXT, which goes to the end where it looks like one.
void add_words(const std::string& key, const std::string& value,
               const std::vector<cli::Entry>& entries, std::vector<std::string>& words,
               std::vector<std::string>& last) {
  const cli::Entry* entry = entry_of(entries, key);
  MASQUE_CHECK(entry != nullptr);
  const std::string option = "--" + key;
  if (entry->positional && value.size() > 1 && value.starts_with('-')) {
    last = {"--", value};
  } else if (entry->positional) {
    words.insert(words.begin(), value);
  } else if (entry->is_flag()) {
    if (value == "true") words.push_back(option);
  } else if (value.starts_with('-')) {
    words.push_back(option + "=" + value);
  } else {
    words.insert(words.end(), {option, value});
  }
}

/// What all runs are given.
std::vector<cli::Setting> shared_settings(const cli::Command& c, const SweepList& list) {
  std::vector<cli::Setting> shared = c.settings();
  std::erase_if(shared, [&](const cli::Setting& setting) {
    const auto has = [&](const auto& keys) {
      return std::ranges::find(keys, setting.key) != std::ranges::end(keys);
    };
    static constexpr std::string_view kOwn[] = {"vary", "seeds", "seed", "output", "resume"};
    // A file may hold all options, with their defaults: as options of a run some would be refused.
    return has(kOwn) || has(commands::cell_keys()) || has(list.keys) ||
           !c.is_requested(setting.key);
  });
  return shared;
}

std::vector<std::string> words_of(const cli::Command& c, const std::vector<cli::Entry>& entries,
                                  const SweepOptions& o, const std::vector<cli::Setting>& shared,
                                  const SweepList& list, const SweepCell& cell) {
  std::vector<std::string> words, last;
  for (const cli::Setting& setting : shared)
    add_words(setting.key, setting.value, entries, words, last);
  for (std::size_t i = 0; i < list.keys.size(); ++i)
    add_words(list.keys[i], cell.values[i], entries, words, last);
  for (std::string& word : commands::thread_words(c, o.cells)) words.push_back(std::move(word));
  words.insert(words.end(), {"--seed", fmt::format("{}", cell.seed), "-o",
                             join(o.output, cell.name), "--resume"});
  words.insert(words.end(), last.begin(), last.end());
  return words;
}

/// Throws UsageError for an objective that needs what the tokenizer of bytes lacks; it alone is
/// known without a file.
void check_objective(const TrainOptions& o, train::ObjectiveOptions requested) {
  if (o.tokenizer != "bytes" || o.replace != "mask" ||
      train::objective_traits(o.objective).reads_labels || train::has_two_networks(o.objective))
    return;
  requested.tokens = train::token_table(text::Tokenizer::open("bytes"));
  requested.pairs = o.format == "pairs";
  train::find_objective(o.objective).make(requested);
}

/// As the run itself will, as far as that needs no file. Throws UsageError.
void check_cell(const std::vector<std::string>& words) {
  RunCommand run;
  std::string text;
  run.command.parse(words, text);
  TrainOptions& o = run.options;
  check_train(run.command, o);
  check_format(o);
  if (o.text == "-" || o.eval_text == "-")
    throw UsageError("several runs cannot share standard input; use a file");
  if (o.timing) {
    throw UsageError(fmt::format("{} cannot be combined with sweep: all runs would write to {}",
                                 field("timing"), escape(*o.timing)));
  }
  if (o.budget && parse_budget(*o.budget).seconds > 0) {
    throw UsageError(
        fmt::format("{} {} cannot be combined with sweep: each run would train a different number "
                    "of steps; use {}",
                    field("budget"), *o.budget, field("steps")));
  }
  if (o.mask) {
    const auto problem = usage_error_message([&] { mask::parse_open_mask_layers(*o.mask); });
    if (problem) throw UsageError(fmt::format("{}: {}", field("mask"), *problem));
  }
  train::RunOptions checked = run_options(o, {}, train::StepPlan());
  checked.design.vocab_size = 1;
  if (!o.init) design_of(checked.design);
  check_objective(o, checked.requested);
  records::SelectionOptions& selection = checked.requested.mlm.selection;
  selection.unit = records::Unit::kToken;  // the tokenizer knows its words
  const records::Selection rates(selection, {});
}

/// The same, of a problem with an option that varies with the name of the run: what an experiment
/// file says of that option is not what is wrong.
void check_cell(const std::vector<std::string>& words, const SweepList& list,
                const SweepCell& cell) {
  const auto problem = usage_error_message([&] { check_cell(words); });
  if (!problem) return;
  for (const std::string& name : fields_of(*problem)) {
    if (std::ranges::find(list.keys, cli::key_of(name)) == list.keys.end()) continue;
    throw UsageError(fmt::format("{}: {}", cell.name, cli::with_options(*problem)));
  }
  throw UsageError(*problem);
}

cli::ExitCode sweep(const SweepOptions& o, const cli::Command& c, cli::Session& session) {
  session.configure(o.common);
  commands::check_cells(o.cells);
  commands::check_values(c);
  const SweepList list = list_of(o);
  if (!c.is_set("text") && std::ranges::find(list.keys, "text") == list.keys.end()) {
    throw UsageError(fmt::format("no TEXT, as in: {} (see '{} --help')", c.examples().front().first,
                                 c.full_name()));
  }
  const std::vector<cli::Setting> shared = shared_settings(c, list);
  const std::vector<cli::Entry> entries = c.entries();
  std::vector<std::string> lines;
  for (const SweepCell& cell : list.cells) {
    throw_if_interrupted();
    std::vector<std::string> words = words_of(c, entries, o, shared, list, cell);
    // A seed changes nothing in what is checked.
    if (cell.seed == o.common.seed) check_cell(words, list, cell);
    words.insert(words.begin(), "lm-train");
    lines.push_back(commands::shell_line(words));
  }
  write_list(o.output, list);
  session.say_if_interrupted(
      fmt::format("{} has the list of the sweep, but not all of it is "
                  "printed: repeat the command",
                  escape(o.output)));
  commands::print_cells("lm-train", lines, o.cells, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_sweep(cli::Command& tool) {
  auto o = std::make_shared<SweepOptions>();
  cli::Command& c = tool.subcommand(
      "sweep", "prints runs with all combinations of options as commands, one per line");
  c.example(
      "lm-train sweep train.txt -o DIR --tokenizer vocab.txt --steps 2000 --vary "
      "learning-rate=0.001,0.002 --vary position=rope,alibi --seeds 3 -j 1 | parallel && lm-train "
      "collect DIR",
      "trains 12 models, one per processor at a time, and prints a table of their losses");
  c.example(
      "lm-train sweep --experiment small.conf -o DIR --print-slurm --slurm-time 4:00:00 > array; "
      "sbatch array",
      "the runs as tasks of a Slurm array; the file has lines such as 'vary = "
      "position=rope,alibi'");
  declare_train_options(
      c, *o,
      {cli::Need::kOptional, "training text, one sequence per line; required unless it varies",
       "folder of the sweep: a folder for each run, and their list"});
  c.option(
      "--vary", "KEY=VALUE,…",
      [o](const std::string& text) { o->varied.push_back(parse_varied(text)); },
      "an option, by its key in an experiment file, and its values: the runs are all combinations "
      "of several of these; write a value that contains commas in parentheses");
  c.option("--seeds", "N", o->seeds, cli::AllowedRange{1, 1e6},
           "number of runs for each combination, with the seeds --seed, --seed + 1, …");
  commands::declare_cells(c, o->cells);
  c.action([o, &c](cli::Session& session) { return sweep(*o, c, session); });
}

}  // namespace masque::lm_train
