#include "difference_table.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace masque::ckpt_grow {

namespace {

std::vector<std::string> columns(bool precisions) {
  std::vector<std::string> names = {"what", "largest_difference", "largest_value"};
  if (precisions) names.insert(names.begin(), "precision");
  return names;
}

cli::Cell short_cell(double value) {
  return cli::Cell::raw(fmt::format("{:.3g}", value), cli::Cell(value).json());
}

}  // namespace

DifferenceTable::DifferenceTable(cli::Session& session, const cli::CommonOptions& options,
                                 bool precisions)
    : table_(session, options, columns(precisions)), precisions_(precisions) {}

void DifferenceTable::add(const grow::ModelDifference& found, kernel::Precision precision) {
  const auto row = [&](const char* what, const std::optional<double>& difference, double largest) {
    if (!difference) return;
    std::vector<cli::Cell> cells = {what, short_cell(*difference), short_cell(largest)};
    if (precisions_) cells.insert(cells.begin(), cli::Cell(kernel::precision_name(precision)));
    table_.row(cells);
  };
  row("logits", found.logits, found.largest_logit);
  row("states", found.states, found.largest_state);
}

}  // namespace masque::ckpt_grow
