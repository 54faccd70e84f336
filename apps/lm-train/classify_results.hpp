// What lm-train classify found: its table, and a seed's record that --resume finds again.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "classify_options.hpp"
#include "cli/table.hpp"
#include "train/classify/classify_run.hpp"
#include "train/run/folder_parts.hpp"
#include "train/run/settings.hpp"

namespace masque::lm_train {

/// Loss, accuracy, F1, Matthews' correlation; of regression loss (in units of the variance of what
/// was learnt), root of the mean squared error, Pearson's and Spearman's correlation.
constexpr std::size_t kMeasures = 4;

/// The file of a seed's folder that --resume finds again.
constexpr const char* kResultName = "result.json";

struct SeedResult {
  std::uint64_t texts = 0;
  std::array<double, kMeasures> measures{};
  train::FileDigests files;  ///< of its folder, but for result.json
};

SeedResult result_of(const train::Classified& found);

/// predictions.tsv; `names` are those of the labels.
std::string predictions(const train::Classified& found, const std::vector<std::string>& names);

/// Everything that decides a seed's bytes, by name.
using train::Settings;

/// result.json of a seed's folder.
std::string record_text(const Settings& settings, train::ProblemType problem,
                        const SeedResult& result);
/// The result that stands in `folder`; none if there is no such folder. Compares no other file.
/// Throws InputError if it is one of something else, or of other settings, by the first that
/// differs.
std::optional<SeedResult> find_record(const std::string& folder, const Settings& settings,
                                      train::ProblemType problem);

/// Throws InputError that names a file in `folder`, which has the `result`, that was changed since.
void check_files(const std::string& folder, const SeedResult& result);

/// A row for each seed, then mean and deviation; on stdout, of several seeds also DIR/results.tsv.
class Results {
 public:
  Results(const ClassifyCommand& options, cli::Session& session);

  /// Prints a row at once: what comes later may fail.
  void add(std::uint64_t seed, const SeedResult& result);
  /// Writes results.tsv as it is by now, whole or not at all.
  void keep() const;
  void finish();

 private:
  void print(const cli::Cell& name, std::uint64_t texts,
             const std::array<double, kMeasures>& measures);

  const ClassifyCommand& options_;
  cli::Session& session_;
  std::string data_;
  cli::Table table_;
  std::string text_;  ///< of results.tsv
  std::uint64_t texts_ = 0;
  std::array<std::vector<double>, kMeasures> columns_;
};

}  // namespace masque::lm_train
