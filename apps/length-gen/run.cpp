// length-gen run: designs × seeds, trained at some lengths and scored at others.
#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "commands.hpp"
#include "kernel/parallel.hpp"
#include "run_options.hpp"
#include "run_output.hpp"

namespace masque::length_gen {

namespace {

struct Options : RunOptions {
  std::optional<std::string> cell;
};

/// "3/12" → 2.
std::size_t parse_cell(const std::string& text, std::size_t cells) {
  if (const auto parts = split_in_two(text, '/')) {
    const auto cell = parse_number<std::size_t>(parts->first);
    const auto of = parse_number<std::size_t>(parts->second);
    if (cell && *cell >= 1 && *cell <= cells && of == cells) return *cell - 1;
  }
  throw UsageError(
      fmt::format("{}: found '{}', expected 1/{} to {}/{}, as length-gen sweep prints them",
                  field("cell"), escape(text), cells, cells, cells));
}

length::LengthNames names_of(const RunOptions& o, const Requested& requested,
                             const length::LengthSubject& subject) {
  length::LengthNames names;
  for (const length::LengthArm& arm : requested.arms) names.designs.push_back(arm.name);
  names.trained = o.train_lengths;
  for (const Index length : requested.request.eval_lengths)
    names.chance[length] = subject.chance(length);
  names.whole = subject.whole();
  return names;
}

cli::ExitCode run(Options& o, cli::Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  if (o.objective_given) o.objective = *o.objective_given;
  Requested requested = requested_of(o);
  length::LengthRequest& request = requested.request;
  if (o.cell) {
    if (o.budget)
      throw UsageError(
          fmt::format("{} cannot be combined with {}: each cell would train a different number of "
                      "steps; use {}",
                      field("cell"), field("budget"), field("steps")));
    request.only = parse_cell(*o.cell, requested.cells());
  }
  const auto subject = subject_of(o, requested);
  request.subject = subject.get();
  request.options = [&](std::size_t arm, std::int64_t steps, std::uint64_t seed) {
    commands::TrainingOptions model = static_cast<const commands::TrainingOptions&>(o);
    if (o.rate) model.mlm.selection.rate = fmt::format("{}", *o.rate);
    model.design = requested.arms[arm].recipe;
    model.position = model.design.position;
    train::RunOptions options = commands::run_options(model, steps, seed);
    // A mixer has weights for every position that there may be.
    if (!model.design.mixer.empty())
      options.design.max_position_embeddings =
          std::max(subject->longest_trained(), subject->longest_scored());
    options.settings.emplace_back("train_length", o.train_lengths);
    options.mask = requested.arms[arm].mask;
    options.settings.emplace_back("mask", options.mask.empty() ? length::kOwn : options.mask);
    return options;
  };
  request.note = [&](const std::string& line) { session.note(line); };
  session.say_if_interrupted(
      fmt::format("results so far are in {}; run the same command to continue", o.output));
  const length::LengthNames names = names_of(o, requested, *subject);
  session.note(fmt::format("{} designs: {}; seeds {}", requested.arms.size(),
                           fmt::join(names.designs, "; "), fmt::join(request.seeds, ", ")));
  for (const std::string& note : subject->notes()) session.note(note);
  if (!request.only) check_tables(o.output);
  request.spent_seconds = seconds_since(begin);
  const std::string results = length::results_text(length::run_lengths(request), names);
  if (request.only) {
    write_part(results, o.output, *request.only + 1, requested.cells());
  } else {
    write_tables(results, o.output, session);
  }
  print_summary(length::read_results(o.output, results), o.common, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_run(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "run", "trains models of several designs and seeds, and scores them at several lengths");
  c.example(
      "length-gen run --text train.txt --eval-text dev.txt --tokenizer vocab.txt --position rope "
      "--normalizer softmax,log_n --train-length 64 --eval-lengths 64,128,256 --budget 5m -o DIR",
      "two designs with three seeds each, in five minutes altogether");
  c.example(
      "length-gen run --task copy --train-length 1-10 --eval-lengths 10,20,40 --steps 500 "
      "--position rope,alibi -o DIR",
      "a synthetic task instead of text");
  c.example("length-gen run lengths.conf -o DIR --seeds 5",
            "options from a file of 'key = value' lines");
  declare_run_options(c, *o);
  c.option("--cell", "I/N", o->cell,
           "train only cell I of N (one design, one seed) for length-gen collect; length-gen sweep "
           "prints these commands");
  c.experiment(cli::ExperimentFile::kArgument);
  c.action([o, &c](cli::Session& session) {
    check_run(c, *o);
    return run(*o, session);
  });
}

}  // namespace masque::length_gen
