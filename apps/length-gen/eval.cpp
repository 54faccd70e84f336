// length-gen eval: a checkpoint, scored at lengths that it was not trained for.
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "commands.hpp"
#include "treated_model.hpp"

namespace masque::length_gen {

namespace {

struct Options : TreatedModelOptions {
  std::optional<std::string> objective;
  std::optional<double> rate;
};

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.common);
  const TreatedModel opened = open_treated_model(o, session);
  const std::string objective = o.objective.value_or(length::length_objective(*opened.model));
  length::check_length_objective(objective, *opened.model);
  length::StreamRequest request = stream_request(o, opened.grid);
  request.objective = objective;
  request.seed = o.common.seed;
  if (command.is_set("seed")) length::check_masked_option("seed", objective, ", which draws masks");
  if (o.rate) {
    length::check_masked_option("rate", objective);
    request.requested.mlm.selection.rate = *o.rate;
  }
  const length::LengthStream stream(request, *opened.tokenizer);
  if (stream.note()) session.note(*stream.note());
  ResultFolder folder(o.output, {"results.tsv", "loss.svg", "accuracy.svg"});
  const auto scores = length::score_lengths(opened.grid, stream, objective);
  ResultTable table(
      o, opened.grid,
      {"objective", "targets", "loss", "loss_se", "perplexity", "accuracy", "accuracy_se"});
  std::vector<CurvePoint> losses, accuracies;
  for (const length::LengthScore& score : scores) {
    const double loss = score.loss.mean(), accuracy = score.accuracy.mean();
    table.add(score.cell,
              {objective, static_cast<Index>(score.loss.counts), loss, score.loss.standard_error(),
               std::exp(loss), accuracy, score.accuracy.standard_error()});
    losses.push_back({score.cell, loss});
    accuracies.push_back({score.cell, accuracy});
  }
  folder.write(table.text());
  folder.write(curves(opened.grid, losses, objective, "loss"));
  folder.write(curves(opened.grid, accuracies, objective, "accuracy"));
  folder.finish();
  table.print(session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_eval(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("eval", "scores a checkpoint at lengths that it was not trained for");
  c.example(
      "length-gen eval gpt2/ --text dev.txt --eval-lengths 512,1024,2048 "
      "--position own,interpolated,hierarchical --policy last",
      "scores the same last tokens with more and more context");
  c.example(
      "length-gen eval DIR --text dev.txt --train-length 64 --eval-lengths 64,128,256 "
      "--position own,ntk,yarn,rerope --normalizer own,log_n -o curves",
      "eight treatments of a rotary model for longer texts, with curves");
  declare_treated_model(c, *o);
  c.option("--objective", "NAME", o->objective,
           "mlm, tta or clm [the objective of the model's head]");
  c.option("--rate", "R", o->rate, cli::AllowedRange{1e-6, 1},
           "share of the tokens that mlm predicts [0.15]");
  cli::add_seed(c, o->common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::length_gen
