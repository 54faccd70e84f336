// length-gen probe: what becomes of a checkpoint's attention at other lengths.
#include "length/probe.hpp"

#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "treated_model.hpp"

namespace masque::length_gen {

namespace {

using length::AttentionAtLength;

struct Options : TreatedModelOptions {
  bool layers = false;
};

struct Measure {
  const char* name;
  double AttentionAtLength::*value;
};

constexpr Measure kMeasures[] = {{"entropy", &AttentionAtLength::entropy},
                                 {"entropy_relative", &AttentionAtLength::entropy_relative},
                                 {"sink", &AttentionAtLength::sink},
                                 {"max_weight", &AttentionAtLength::max_weight},
                                 {"score_sd", &AttentionAtLength::score_spread},
                                 {"log_z", &AttentionAtLength::log_partition}};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const TreatedModel opened = open_treated_model(o, session);
  length::StreamRequest request = stream_request(o, opened.grid);
  request.objective = length::scored_objective(evaluate::ScoreKind::kTta);  // nothing is hidden
  const length::LengthStream stream(request, *opened.tokenizer);
  if (stream.note()) session.note(*stream.note());
  std::vector<std::string> files{"results.tsv"};
  for (const Measure& measure : kMeasures) files.push_back(fmt::format("{}.svg", measure.name));
  ResultFolder folder(o.output, files);
  const auto rows = length::probe_lengths(opened.grid, stream, o.layers);
  std::vector<std::string> columns{"layer", "blocks"};
  for (const Measure& measure : kMeasures) columns.emplace_back(measure.name);
  ResultTable table(o, opened.grid, columns);
  for (const AttentionAtLength& row : rows) {
    std::vector<ResultTable::Value> values{
        row.layer ? fmt::format("{}", *row.layer) : std::string("all"), row.blocks};
    for (const Measure& measure : kMeasures) values.emplace_back(row.*measure.value);
    table.add(row.cell, values);
  }
  folder.write(table.text());
  for (const Measure& measure : kMeasures) {
    std::vector<CurvePoint> points;
    for (const AttentionAtLength& row : rows) {
      if (!row.layer) points.push_back({row.cell, row.*measure.value});
    }
    folder.write(curves(opened.grid, points, "attention", measure.name));
  }
  folder.finish();
  table.print(session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_probe(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "probe", "measures attention at each length: entropy, sinks, scores, partition function");
  c.example("length-gen probe bert-base-uncased/ --text dev.txt --eval-lengths 64,128,256,512",
            "means over all heads");
  c.example(
      "length-gen probe DIR --text dev.txt --eval-lengths 64,256 --normalizer own,log_n --layers",
      "two normalizers, also by layer");
  declare_treated_model(c, *o);
  c.flag("--layers", o->layers, "also print a row for each layer");
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::length_gen
