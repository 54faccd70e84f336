#include "treated_model.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "commands/run_options.hpp"
#include "draw/chart.hpp"
#include "draw/svg.hpp"
#include "kernel/parallel.hpp"
#include "length/arms.hpp"
#include "run_output.hpp"
#include "scoring_options.hpp"

namespace masque::length_gen {

namespace {

/// The parts of a treatment's name that differ among all.
std::string name_of(const length::TreatmentGrid& grid, const length::LengthTreatment& treatment) {
  const auto differs = [&](const auto& part) {
    return std::ranges::any_of(grid.treatments, [&](const length::LengthTreatment& other) {
      return part(other) != part(treatment);
    });
  };
  const auto normalizer = [](const length::LengthTreatment& one) { return one.normalizer; };
  const auto mask = [](const length::LengthTreatment& one) { return one.mask_text(); };
  std::string name = treatment.position->text();
  if (differs(normalizer)) name += fmt::format(", {}", treatment.normalizer);
  if (differs(mask)) name += fmt::format(", {}", treatment.mask_text());
  return name;
}

cli::Cell cell_of(const ResultTable::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* count = std::get_if<Index>(&value)) return *count;
  return cli::Cell::rounded(std::get<double>(value));
}

}  // namespace

void declare_treated_model(cli::Command& c, TreatedModelOptions& o) {
  c.argument("MODEL", o.model,
             "a checkpoint folder, or hf:OWNER/NAME of the local Hugging Face cache");
  c.option("--text", "FILE", o.text, "text, cut into blocks of each length", cli::Need::kRequired);
  commands::add_folder_options(c, o.tokenizer, o.family);
  commands::add_precision(c, o.precision);
  add_eval_lengths(c, o.eval_lengths, "block lengths in tokens, including the template");
  c.option("--train-length", "N", o.train_length, cli::AllowedRange{1, 1e6},
           "longest sequence in training [the model's maximum length]");
  c.option("--position", "LIST", o.treatments.positions,
           "treatments of positions: own, interpolated, hierarchical, ntk, ntk_mixed, yarn, "
           "rerope, leaky_rerope, alibi");
  c.option("--normalizer", "LIST", o.treatments.normalizers,
           "own, log_n (based on --train-length), or any that attn-probe variants lists");
  c.option("--mask", "LIST", o.treatments.masks,
           "own, or masks as in mask-viz, separated by semicolons: 'own; window(64)'");
  add_windows(c, o.treatments.windows, "repeat");
  c.option("--policy", "POLICY", o.policy,
           "how the text is cut into blocks: chunk, slide:STRIDE or last");
  add_eval_tokens(c, o.eval_tokens, "--text");
  commands::add_batch_tokens(c, o.batch_tokens);
  c.option("-o,--output", "DIR", o.output, "also write results.tsv and SVG curves to this folder");
  c.writes({"output"}, {"/results.tsv"});
  cli::add_threads(c, o.common);
  cli::add_quiet(c, o.common);
  cli::add_table(c, o.common);
}

TreatedModel open_treated_model(const TreatedModelOptions& o, cli::Session& session) {
  TreatedModel opened;
  length::TreatmentGrid& grid = opened.grid;
  length::TreatmentLists treatments = o.treatments;
  if (treatments.masks) treatments.masks = masks_with_files_read(*treatments.masks);
  grid.treatments = length::make_treatments(treatments);
  grid.lengths = length::parse_lengths("eval_lengths", o.eval_lengths);
  kernel::set_threads(o.common.threads);
  opened.tokenizer = std::make_unique<const text::Tokenizer>(
      text::Tokenizer::open(o.tokenizer.value_or(o.model), {.model = o.model}));
  session.notes(opened.tokenizer->parts().path, opened.tokenizer->warnings());
  opened.model = std::make_unique<const model::TreatableModel>(o.model, o.family, o.precision);
  const auto tokens = static_cast<Index>(opened.tokenizer->size());
  const Index rows = opened.model->design().vocab_size;
  if (tokens > rows) {
    throw InputError(
        opened.tokenizer->parts().path,
        fmt::format("{} tokens, expected at most {}, the model's vocabulary size", tokens, rows));
  }
  grid.model = opened.model.get();
  grid.trained = o.train_length.value_or(opened.model->trained_length());
  if (grid.trained == 0) {
    throw UsageError(fmt::format("{}: no maximum length in the model, expected {}", o.model,
                                 field("train_length")));
  }
  grid.precision = o.precision;
  grid.batch_tokens = o.batch_tokens;
  grid.mask_token_id = opened.tokenizer->roles().mask;
  grid.tokens = train::token_table(*opened.tokenizer);
  grid.note = [&session](const std::string& line) { session.note(line); };
  session.note(fmt::format("{}: {}, {} layers, trained at length {}", o.model,
                           opened.model->design().family, opened.model->design().num_hidden_layers,
                           grid.trained));
  return opened;
}

length::StreamRequest stream_request(const TreatedModelOptions& o,
                                     const length::TreatmentGrid& grid) {
  length::StreamRequest request;
  request.text = o.text;
  request.lengths = grid.lengths;
  request.tokens = o.eval_tokens;
  request.threads = o.common.threads;
  request.policy = evaluate::parse_length_policy(o.policy, "chunk, slide:STRIDE or last");
  return request;
}

ResultTable::ResultTable(const TreatedModelOptions& options, const length::TreatmentGrid& grid,
                         const std::vector<std::string>& columns)
    : options_(options), grid_(grid), columns_{"position",     "normalizer", "mask",
                                               "train_length", "policy",     "eval_length"} {
  columns_.insert(columns_.end(), columns.begin(), columns.end());
}

void ResultTable::add(const length::TreatedLength& cell, const std::vector<Value>& values) {
  const length::LengthTreatment& treatment = grid_.treatments[cell.treatment];
  std::vector<Value>& row = rows_.emplace_back();
  row = {treatment.position->text(),
         treatment.normalizer,
         treatment.mask_text(),
         grid_.trained,
         options_.policy,
         cell.length};
  row.insert(row.end(), values.begin(), values.end());
  MASQUE_CHECK(row.size() == columns_.size());
}

void ResultTable::print(cli::Session& session) const {
  cli::Table table(session, options_.common, columns_);
  for (const std::vector<Value>& row : rows_) {
    std::vector<cli::Cell> fields;
    fields.reserve(row.size());
    for (const Value& value : row) fields.push_back(cell_of(value));
    table.row(fields);
  }
  table.finish();
}

std::string ResultTable::text() const {
  std::string text = line_of(columns_);
  for (const std::vector<Value>& row : rows_) {
    std::vector<std::string> fields;
    fields.reserve(row.size());
    for (const Value& value : row) {
      const auto* number = std::get_if<double>(&value);
      fields.push_back(number != nullptr ? fmt::format("{}", *number) : cell_of(value).text());
    }
    text += line_of(fields);
  }
  return text;
}

std::string curves(const length::TreatmentGrid& grid, const std::vector<CurvePoint>& points,
                   const std::string& title, const std::string& measure) {
  draw::Chart chart;
  chart.title = fmt::format("{}, trained at {}", title, grid.trained);
  chart.x = {"length", true};
  chart.y.name = measure;
  for (const CurvePoint& point : points) {
    const std::string name = name_of(grid, grid.treatments[point.cell.treatment]);
    if (chart.curves.empty() || chart.curves.back().name != name)
      chart.curves.push_back({name, {}, {}});
    chart.curves.back().x.push_back(static_cast<double>(point.cell.length));
    chart.curves.back().y.push_back(point.y);
  }
  return draw::svg(chart);
}

ResultFolder::ResultFolder(const std::optional<std::string>& path,
                           const std::vector<std::string>& files) {
  if (!path) return;
  refuse_other_results(*path, files, "position\tnormalizer\t");
  folder_.emplace(*path, Existing::kReplace);
  files_.reserve(files.size());
  for (const std::string& file : files) files_.push_back(folder_->create(file, 0666));
  folder_->check_replaced();
}

void ResultFolder::write(const std::string& content) {
  if (!folder_) return;
  write_all(files_.at(next_).get(), as_bytes(content), folder_->path());
  ++next_;
}

void ResultFolder::finish() {
  if (folder_) folder_->commit();
}

}  // namespace masque::length_gen
