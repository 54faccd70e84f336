// How far two models are from each other, as a table.
#pragma once

#include "cli/table.hpp"
#include "grow/compare_models.hpp"

namespace masque::ckpt_grow {

/// what, largest_difference, largest_value; of several precisions a column more.
class DifferenceTable {
 public:
  DifferenceTable(cli::Session& session, const cli::CommonOptions& options,
                  bool precisions = false);
  void add(const grow::ModelDifference& found, kernel::Precision precision);
  void finish() { table_.finish(); }

 private:
  cli::Table table_;
  bool precisions_;
};

}  // namespace masque::ckpt_grow
