#include "stats_columns.hpp"

namespace masque::attn_probe {

using probe::MeasuredPer;
using probe::StateTotals;

std::vector<Column> all_columns(const std::vector<std::string>& tokens) {
  std::vector<Column> columns;
  columns.reserve(probe::kHeadFields + tokens.size() + 2);
  for (const auto& field : probe::kHeadFieldTable)
    columns.push_back(
        {std::string(field.name), field.field, {}, nullptr, field.per, field.formula});
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    columns.push_back({std::string(kTokenField) + tokens[t],
                       {},
                       t,
                       nullptr,
                       MeasuredPer::kRow,
                       probe::kTokenFormula});
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
