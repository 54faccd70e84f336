// Rows of words and of regions, for `score --per-word`.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "probe/score/word_scores.hpp"

namespace masque::lm_score {

struct WordOptions {
  bool per_word = false;
  std::optional<probe::WordUnit> words;  ///< none: by white space
  bool space_correction = false;
  bool regions = false;
};

/// --per-word, --words, --space-correction, --regions.
void add_word_options(cli::Command& command, WordOptions& options);

/// The words of lines whose scores are on their way.
class WordRows {
 public:
  /// Makes `scoring` score what a correction needs, and says what is printed. Throws UsageError for
  /// options that do not go together or with the kind, InputError for the tokenizer.
  WordRows(const WordOptions& options, commands::Scoring& scoring,
           const commands::OpenedModel& opened, cli::Session& session);

  /// The text that a line has. Throws InputError (message only) for a line without the columns of
  /// regions.
  std::string_view text_of(std::string_view line) const;
  /// Takes the words of a line, in the order of scoring. Throws InputError (message only) for
  /// labels that do not fit.
  void add(std::string_view line, const probe::Sentence& sentence);

  std::vector<std::string> columns() const;
  /// Rows of the next line, or members of its JSON object.
  void each_row(const probe::ScoredSentence& scored, const commands::ResultFormat& number,
                const std::function<void(const std::vector<cli::Cell>&)>& use);
  void members(const probe::ScoredSentence& scored, const commands::ResultFormat& number,
               JsonWriter& json);

 private:
  struct Line {
    std::string text;
    std::vector<probe::Region> rows;  ///< words have no label
  };

  Line next();
  std::string_view part(const Line& line, const probe::WordTokens& row) const;
  std::optional<double> score(const probe::ScoredSentence& scored,
                              const probe::WordTokens& row) const;

  WordOptions options_;
  std::optional<probe::SpaceCorrection> correction_;
  std::deque<Line> lines_;
};

}  // namespace masque::lm_score
