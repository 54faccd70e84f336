#include "check_output.hpp"

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/json_writer.hpp"

namespace masque::attn_probe {

namespace {

using cli::Cell;

Cell none() { return Cell::none(); }

/// Six digits: differences are for looking at.
Cell short_cell(double value) {
  const std::string text = fmt::format("{:.6g}", value);
  return Cell::raw(text, value - value == 0 ? text : "null");
}

/// `state` as in transformers' hidden_states: 0 is the embeddings, N stands after N layers.
Cell state_cell(Index state, Index layers) { return state > layers ? Cell("output") : Cell(state); }

std::string state_place(Index state, Index layers) {
  return state > layers ? "the output"
         : state == 0   ? "the embeddings"
                        : fmt::format("the states after {} layer{}", state, state == 1 ? "" : "s");
}

}  // namespace

cli::ExitCode print_leaks(const probe::LeakReport& report, const probe::LeakRequest& request,
                          const commands::OpenModelOptions& options, cli::Session& session) {
  const Index layers = std::ssize(report.layers) - 1;
  cli::Table table(session, options.common,
                   {"hidden_states", "pairs", "leaking", "difference", "text", "token", "position",
                    "replacement"});
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    const probe::LayerLeaks& layer = report.layers[l];
    std::vector<Cell> cells = {state_cell(static_cast<Index>(l) + 1, layers), report.pairs,
                               layer.pairs, short_cell(layer.largest)};
    if (layer.first) {
      const probe::LeakPlace& at = *layer.first;
      cells.insert(cells.end(), {at.text, at.token, at.position, at.replacement});
    } else {
      cells.insert(cells.end(), 4, none());
    }
    table.row(cells, layer.first ? cli::Tone::kBad : cli::Tone::kPlain);
  }
  table.finish();
  const std::string how = fmt::format(
      "{} of {} tokens of {} texts, {} replacements each, tolerance {}, seed {}", report.tokens,
      report.all_tokens, report.texts, request.replacements, request.tolerance, request.seed);
  const auto first = report.first_layer();
  if (!first) {
    session.note(fmt::format("{}: clean; {}", options.model, how));
    return cli::ExitCode::kDone;
  }
  const probe::LeakPlace& at = *report.layers[static_cast<std::size_t>(*first) - 1].first;
  session.note(fmt::format("{}: leak in {}: text {}, position {} depends on token {}; {}",
                           options.model, state_place(*first, layers), at.text, at.position,
                           at.token, how));
  return cli::ExitCode::kFound;
}

cli::ExitCode print_invariance(const probe::InvarianceReport& report,
                               const commands::OpenModelOptions& options, Index layers,
                               cli::Session& session) {
  cli::Table table(
      session, options.common,
      {"run", "texts", "rows", "differing", "difference", "text", "hidden_states", "position"});
  const probe::InvarianceRow* bad = nullptr;
  for (const probe::InvarianceRow& row : report.rows) {
    std::vector<Cell> cells = {row.name, row.texts, row.rows, row.differing,
                               short_cell(row.largest)};
    if (row.first) {
      cells.insert(cells.end(), {Cell(row.first->text), state_cell(row.first->layer, layers),
                                 Cell(row.first->position)});
      if (bad == nullptr) bad = &row;
    } else {
      cells.insert(cells.end(), 3, none());
    }
    table.row(cells, row.first ? cli::Tone::kBad : cli::Tone::kPlain);
  }
  table.finish();
  if (bad == nullptr) {
    session.note(fmt::format("{}: clean; tolerance {}", options.model, report.tolerance));
    return cli::ExitCode::kDone;
  }
  session.note(fmt::format("{}: '{}' differs first in {}: text {}, position {}; tolerance {}",
                           options.model, bad->name, state_place(bad->first->layer, layers),
                           bad->first->text, bad->first->position, report.tolerance));
  return cli::ExitCode::kFound;
}

cli::ExitCode print_sane(const std::vector<probe::SaneRow>& rows, double tolerance,
                         const commands::OpenModelOptions& options, cli::Session& session) {
  cli::Table table(session, options.common, {"check", "checked", "found", "value", "places"});
  std::string found;
  for (const probe::SaneRow& row : rows) {
    std::string text;
    std::string json;
    JsonWriter(json).array(row.places);
    for (const std::string& place : row.places) text += (text.empty() ? "" : "; ") + place;
    const bool bad = row.found > 0 && row.check != "unused_tensor";
    if (bad) found += (found.empty() ? "" : ", ") + row.check;
    table.row({row.check, row.checked, row.found, short_cell(row.value),
               Cell::raw(text.empty() ? "-" : escape(text), json, text)},
              bad ? cli::Tone::kBad : cli::Tone::kPlain);
  }
  table.finish();
  session.note(fmt::format("{}: {}; tolerance {}", options.model,
                           found.empty() ? "sane" : "found " + found, tolerance));
  return found.empty() ? cli::ExitCode::kDone : cli::ExitCode::kFound;
}

}  // namespace masque::attn_probe
