// Options of lm-score choose, and what they are with a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/open_model.hpp"
#include "commands/scoring.hpp"
#include "commands/text_stream.hpp"
#include "probe/score/label_scorer.hpp"

namespace masque::lm_score {

struct ChooseOptions {
  commands::OpenModelOptions open;
  commands::ScoringOptions scoring{.masked_kind = probe::ScoreKind::kPllWordL2r};
  commands::StreamOptions stream;
  std::vector<std::string> files;
  std::string pattern;
  std::string labels;
  std::optional<std::string> text_columns;
  std::optional<std::int64_t> label_column;
  bool calibrate = false;
  std::optional<std::string> content_free;
  std::optional<std::string> length_normalization;
  bool scores = false;
  bool summary = false;
  bool write_records = false;
  std::optional<std::int64_t> shots;
  std::optional<std::uint64_t> seed;
};

void add_choose_options(cli::Command& command, ChooseOptions& options);

/// Throws UsageError for options that do not go together.
void check_choose(const ChooseOptions& options);

/// A line's columns.
struct LabelledLine {
  std::vector<std::string> texts;
  std::optional<Index> gold;  ///< the place of its label, if --label-column is given
};

/// Which columns of a line are what.
class LabelledColumns {
 public:
  /// Throws UsageError for columns that are no numbers, not as many as `texts`, or the same.
  LabelledColumns(const ChooseOptions& options, std::size_t texts);

  /// Throws InputError (message only) for a column that is not there, and a label that is none of
  /// these.
  LabelledLine read(std::string_view line, const std::vector<probe::VerbalizedLabel>& labels) const;

 private:
  std::vector<std::size_t> texts_;  ///< from 0
  std::optional<std::size_t> gold_;
};

/// All that decides a label, made for a model. Stays where it is.
struct Chooser {
  Chooser(const ChooseOptions& options, const commands::OpenedModel& opened, cli::Session& session);
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  commands::Scoring scoring;
  probe::ClozeEncoder encoder;
  probe::LabelWords words;
  probe::LengthNormalization length;
  LabelledColumns columns;
  std::string provenance;  ///< members of a JSON object
};

/// The inputs of --calibrate.
std::vector<std::string> content_free_inputs(const ChooseOptions& options);

}  // namespace masque::lm_score
