#include "stats_output.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/name_table.hpp"
#include "base/string/split.hpp"
#include "draw/figure_file.hpp"

namespace masque::attn_probe {

namespace {

using evaluate::AttentionTotals;
using evaluate::HeadField;
using evaluate::Moments;
using evaluate::StateTotals;

using NamedColumns = std::vector<std::pair<std::string_view, Column>>;

/// `columns`, which must stay, by their names.
NamedColumns by_name(const std::vector<Column>& columns) {
  NamedColumns named;
  for (const Column& column : columns) named.emplace_back(column.name, column);
  return named;
}

/// What is shown where nothing is chosen, besides ranks.
constexpr const char* kUsualFields = "entropy,distance,previous,next,first,special";
constexpr const char* kRankFields =
    ",logits_rank,logits_effective_rank,map_rank,map_effective_rank";

/// Whether maps over a source have no such field.
bool lacks_source(const Column& column) {
  return column.head && !evaluate::is_of_source(*column.head);
}

/// Throws UsageError for a named field that maps over a source do not have.
void refuse_of_source(std::string_view option, const Column& column) {
  throw UsageError(fmt::format("{}: {} is a field of attention inside one text, not to a source",
                               option, column.name));
}

std::vector<Column> chosen(const OutputOptions& options) {
  const std::string list =
      options.fields.value_or(std::string(kUsualFields) + options.besides + kRankFields);
  std::vector<Column> all = all_columns(shown_tokens(options));
  if (list == "all") {
    if (options.of_source) std::erase_if(all, lacks_source);
    return all;
  }
  const NamedColumns named = by_name(all);
  const std::vector<std::string_view> names = split(list, ',');
  std::vector<Column> columns = named_values("fields", std::span(names), NameTable<Column>(named));
  if (options.of_source && options.fields) {
    const auto wrong = std::ranges::find_if(columns, lacks_source);
    if (wrong != columns.end()) refuse_of_source("--fields", *wrong);
  }
  if (options.of_source) std::erase_if(columns, lacks_source);
  for (const Column& column : all) {
    if (!options.fields && column.token) columns.push_back(column);
  }
  return columns;
}

Column drawn(const OutputOptions& options) {
  const std::vector<Column> all = all_columns(shown_tokens(options));
  const NamedColumns named = by_name(all);
  return named_value("draw", options.draw.value_or("entropy"), NameTable<Column>(named));
}

/// Whether the embeddings, which have no heads, have anything to show.
bool shows_states(const std::vector<Column>& columns) {
  return std::ranges::any_of(columns, [](const Column& column) { return !column.is_of_heads(); });
}

/// Ranks are shown where they were requested.
void leave_out_ranks(const AttentionTotals& totals, std::vector<Column>& columns) {
  std::erase_if(columns, [&](const Column& column) {
    if (!column.head) return false;
    const auto& info = evaluate::kHeadFieldTable[evaluate::index_of(*column.head)];
    return info.per == evaluate::MeasuredPer::kRank &&
           std::ranges::all_of(totals.head,
                               [&](const auto& head) { return head[HeadField::kMapRank].n == 0; });
  });
}

/// Rows of maps that no field counts.
std::uint64_t rows_left_out(const AttentionTotals& totals) {
  std::uint64_t rows = 0;
  for (const evaluate::HeadTotals& head : totals.head)
    rows += totals.tokens - std::min(totals.tokens, head.count(HeadField::kEntropy));
  return rows;
}

struct Number {
  std::uint64_t n = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double error = std::numeric_limits<double>::quiet_NaN();
};

Number of_state(const StateTotals& state, Moments StateTotals::*field) {
  const Moments& m = state.*field;
  if (m.n == 0) return {};
  return {m.n, m.mean, standard_error(m)};
}

/// Of a head, or with layer −1 of the embeddings.
Number number_of(const AttentionTotals& totals, Index layer, Index head, const Column& column) {
  if (!column.is_of_heads())
    return of_state(totals.state[static_cast<std::size_t>(layer + 1)], column.state);
  if (layer < 0) return {};
  const evaluate::HeadTotals& own = totals.of(layer, head);
  if (column.token) {
    if (*column.token >= own.tokens.size() || own.tokens[*column.token].n == 0) return {};
    const Moments& m = own.tokens[*column.token];
    return {m.n, m.mean, standard_error(m)};
  }
  return {own.count(*column.head), own.mean(*column.head), own.error(*column.head)};
}

const Moments& divergence_of(const AttentionTotals& totals, Index layer, Index head, Index other) {
  return totals
      .divergence[static_cast<std::size_t>((layer * totals.heads + head) * totals.heads + other)];
}

std::string json_line(const AttentionTotals& totals, Index layer, Index head,
                      const std::vector<Column>& columns, const Provenance& provenance, bool pairs,
                      const commands::ResultFormat& format) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  if (layer < 0) {
    json.key("layer").null().key("head").null();
  } else {
    json.member("layer", layer).member("head", head);
  }
  for (const Column& column : columns) {
    if (layer < 0 && column.is_of_heads()) continue;
    const Number x = number_of(totals, layer, head, column);
    json.key(column.name).begin_object().member("n", x.n);
    json.raw_member("mean", format.json(x.mean)).raw_member("se", format.json(x.error));
    json.end_object();
  }
  if (layer >= 0 && pairs) {
    json.key("js_to").begin_array();
    for (Index other = 0; other < totals.heads; ++other)
      json.raw(format.json(divergence_of(totals, layer, head, other).mean));
    json.end_array();
  }
  json.raw(provenance).end_object();
  return line + "\n";
}

void print_table(const AttentionTotals& totals, const std::vector<Column>& columns,
                 const commands::ResultFormat& format, const cli::CommonOptions& common,
                 cli::Session& session) {
  std::vector<std::string> names{"layer", "head"};
  for (const Column& column : columns) {
    const std::string name = escape(column.name);
    names.insert(names.end(), {name, name + "_se", name + "_n"});
  }
  cli::Table table(session, common, names);
  const auto add_row = [&](Index layer, Index head) {
    std::vector<cli::Cell> cells;
    cells.reserve(names.size());
    for (const Index each : {layer, head}) {
      cells.push_back(layer < 0 ? cli::Cell::none() : cli::Cell(each));
    }
    for (const Column& column : columns) {
      if (layer < 0 && column.is_of_heads()) {
        cells.insert(cells.end(), 3, cli::Cell::none());
        continue;
      }
      const Number x = number_of(totals, layer, head, column);
      cells.push_back(format.cell(x.mean));
      cells.push_back(format.cell(x.error));
      cells.emplace_back(x.n);
    }
    table.row(cells);
  };
  if (shows_states(columns)) add_row(-1, 0);
  for (Index layer = 0; layer < totals.layers; ++layer) {
    for (Index head = 0; head < totals.heads; ++head) add_row(layer, head);
  }
  table.finish();
}

void print_pairs(const AttentionTotals& totals, const commands::ResultFormat& format,
                 const cli::CommonOptions& common, cli::Session& session) {
  cli::Table table(session, common, {"layer", "head", "other", "js", "js_se", "js_n"});
  for (Index layer = 0; layer < totals.layers; ++layer) {
    for (Index head = 0; head < totals.heads; ++head) {
      for (Index other = 0; other < totals.heads; ++other) {
        if (other == head) continue;
        const Moments& js = divergence_of(totals, layer, head, other);
        table.row(
            {layer, head, other, format.cell(js.mean), format.cell(standard_error(js)), js.n});
      }
    }
  }
  table.finish();
}

/// What a picture of `column` shows, where its name alone does not say it.
std::string title_of(const Column& column) {
  if (column.token)
    return fmt::format("attention to {}, by head", column.name.substr(kTokenField.size()));
  switch (column.head.value_or(HeadField::kEntropy)) {
    case HeadField::kDiagonal: return "attention of tokens to themselves, by head";
    case HeadField::kPrevious: return "attention to the previous token, by head";
    case HeadField::kNext: return "attention to the next token, by head";
    case HeadField::kFirst: return "attention to the first token, by head";
    case HeadField::kLast: return "attention to the last token, by head";
    case HeadField::kSpecial: return "attention to special tokens, by head";
    case HeadField::kPunctuation: return "attention to punctuation, by head";
    default: return fmt::format("{} by head", column.name);
  }
}

void draw(const AttentionTotals& totals, const Column& column, const std::string& path) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(totals.layers * totals.heads));
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (Index layer = 0; layer < totals.layers; ++layer) {
    for (Index head = 0; head < totals.heads; ++head) {
      const double value = number_of(totals, layer, head, column).mean;
      values.push_back(value);
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) low = high = 0;
  // Small differences of large numbers are no contrast.
  const double darkest =
      column.head && evaluate::may_be_negative(*column.head) ? low : std::min(low, 0.0);
  draw::Figure figure;
  figure.title = title_of(column);
  figure.description =
      fmt::format("{} layers of {} heads, {} from {:.4g} to {:.4g}, mean over {} sentences",
                  totals.layers, totals.heads, column.name, low, high, totals.sentences);
  figure.panels.push_back(
      {.name = "",
       .grid = draw::heat_grid(totals.layers, totals.heads, values, darkest, high),
       .rows = {.name = "layer", .labels = {}},
       .columns = {.name = "head", .labels = {}}});
  figure.heat = {std::string(column.name), darkest, high};
  draw::write_picture(path, figure);
}

}  // namespace

void add_output(cli::Command& command, OutputOptions& options) {
  command.option(
      "--fields", "LIST", options.fields,
      fmt::format("fields to print, separated by commas, or all; attn-probe fields lists "
                  "them [{}]",
                  kUsualFields));
  command.flag(
      "--pairs", options.pairs,
      "print js for each pair of heads instead; with --json, add a list js_to to each head");
  command.option("-o,--output", "FILE", options.picture,
                 "also write a heat map of layers × heads (.svg .png)");
  command.writes({"output"});
  command.option("--draw", "FIELD", options.draw, "field that -o draws [entropy]");
  commands::add_digits(command, options.digits);
}

std::vector<std::string> shown_tokens(const OutputOptions& options) {
  std::vector<std::string> tokens;
  const auto add = [&](std::string_view token) {
    if (std::ranges::find(tokens, token) == tokens.end()) tokens.emplace_back(token);
  };
  for (const std::string& token : options.tokens) add(token);
  const std::string fields = options.fields.value_or("");
  std::vector<std::string_view> names = split(fields, ',');
  if (options.draw) names.push_back(*options.draw);
  for (const std::string_view name : names) {
    if (name.starts_with(kTokenField)) add(name.substr(kTokenField.size()));
  }
  return tokens;
}

void check_output(const OutputOptions& options, bool json) {
  chosen(options);
  if (options.draw && !options.picture) throw UsageError("--draw needs -o FILE");
  const Column column = drawn(options);
  if (options.draw && !column.is_of_heads())
    throw UsageError(
        fmt::format("--draw: {} is a field of layers, expected a field of heads", column.name));
  if (options.of_source && lacks_source(column)) refuse_of_source("--draw", column);
  if (options.pairs && !json && options.fields)
    throw UsageError("--pairs prints no other fields: --fields needs --json with it");
  if (options.picture && !draw::is_picture_name(*options.picture)) {
    throw UsageError(fmt::format("-o: found '{}', expected a name that ends in .svg or .png",
                                 escape(*options.picture)));
  }
  if (options.picture) open_folder(folder_of(*options.picture));
}

bool needs_layers(const OutputOptions& options) {
  const auto compares = [](const Column& column) {
    return column.head >= evaluate::HeadField::kBelowCosine &&
           column.head <= evaluate::HeadField::kLowestDivergence;
  };
  return std::ranges::any_of(chosen(options), compares) || compares(drawn(options));
}

bool needs_ranks(const OutputOptions& options) {
  const bool named = options.fields && options.fields != "all";
  const auto is_rank = [](const Column& column) {
    return column.head && evaluate::kHeadFieldTable[evaluate::index_of(*column.head)].per ==
                              evaluate::MeasuredPer::kRank;
  };
  return (named && std::ranges::any_of(chosen(options), is_rank)) || is_rank(drawn(options));
}

void print_stats(const AttentionTotals& totals, const Provenance& provenance,
                 const OutputOptions& options, const commands::ResultFormat& format,
                 const cli::CommonOptions& common, cli::Session& session) {
  std::vector<Column> columns = chosen(options);
  if (!options.fields || options.fields == "all") leave_out_ranks(totals, columns);
  if (common.json) {
    if (shows_states(columns))
      session.print(json_line(totals, -1, 0, columns, provenance, options.pairs, format));
    for (Index layer = 0; layer < totals.layers; ++layer) {
      for (Index head = 0; head < totals.heads; ++head) {
        session.print(json_line(totals, layer, head, columns, provenance, options.pairs, format));
      }
    }
  } else if (options.pairs) {
    print_pairs(totals, format, common, session);
  } else {
    print_table(totals, columns, format, common, session);
  }
  if (const std::uint64_t left_out = rows_left_out(totals); left_out > 0) {
    session.note(fmt::format("skipped rows without weight or with weights that are not finite: {}",
                             left_out));
  }
  if (options.picture) draw(totals, drawn(options), *options.picture);
}

using evaluate::MeasuredPer;
using evaluate::StateTotals;

std::vector<Column> all_columns(const std::vector<std::string>& tokens) {
  std::vector<Column> columns;
  columns.reserve(evaluate::kHeadFields + tokens.size() + 2);
  for (const auto& field : evaluate::kHeadFieldTable)
    columns.push_back(
        {std::string(field.name), field.field, {}, nullptr, field.per, field.formula});
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    columns.push_back({std::string(kTokenField) + tokens[t],
                       {},
                       t,
                       nullptr,
                       MeasuredPer::kRow,
                       evaluate::kTokenFormula});
  }
  columns.push_back({"residual",
                     {},
                     {},
                     &StateTotals::residual,
                     MeasuredPer::kSentence,
                     "norm of x - mean of x over positions, divided by norm of x"});
  columns.push_back({"cosine",
                     {},
                     {},
                     &StateTotals::cosine,
                     MeasuredPer::kSentence,
                     "mean cosine between the states of two tokens"});
  return columns;
}

}  // namespace masque::attn_probe
