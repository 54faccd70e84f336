// What width, depth and both have in common.
#pragma once

#include <optional>
#include <string>

#include "cli/run_tool.hpp"
#include "cli/table.hpp"
#include "commands/write_flags.hpp"
#include "grow/compare_models.hpp"
#include "grow/grow_model.hpp"

namespace masque::ckpt_grow {

struct GrowthOptions {
  std::string in, out;
  grow::GrowthRequest request;
  bool wider = false;                  ///< the command has --factor
  bool deeper = false;                 ///< the command needs `layers`
  std::optional<std::int64_t> layers;  ///< of the request
  std::optional<std::uint64_t> seed;
  bool verify = false;
  commands::WriteFlags write;
  cli::CommonOptions common;
};

/// CHECKPOINT and -o.
void add_folders(cli::Command& command, GrowthOptions& options);
/// --noise, --seed, --verify and the options of what is written.
void add_growth(cli::Command& command, GrowthOptions& options);

/// Says what the larger model is and whether its function is the same, writes it, and with --verify
/// runs both; exit code 1 if a function that should be the same is not.
cli::ExitCode run_growth(const GrowthOptions& options, cli::Session& session);

// How far two models are from each other, as a table.

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
