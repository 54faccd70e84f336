// Corrected texts against what they should be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/output_file.hpp"
#include "base/split.hpp"
#include "cli/table.hpp"
#include "commands/files.hpp"
#include "probe/write/correct.hpp"
#include "probe/write/correction_counts.hpp"

namespace masque::lm_write {

/// The texts of standard input against those of --reference.
class Judgement {
 public:
  Judgement(const std::string& reference, const std::optional<std::string>& output)
      : path_(reference), output_(output) {
    text_ = commands::read_file(path_);
    references_ = split_terminated(text_, '\n');
  }

  void add(const probe::Line& line, const std::string& output) {
    if (count_ == references_.size()) refuse();
    counts_.add(line.text, output, without_return(references_[count_++]));
    if (output_) texts_ += output + "\n";
  }

  void print(const cli::CommonOptions& common, cli::Session& session) {
    if (count_ != references_.size()) refuse();
    if (output_) replace_text(*output_, texts_);
    cli::Table table(session, common,
                     {"level", "task", "right", "done", "wanted", "precision", "recall", "f1"});
    row(table, "word", "detection", counts_.word_detection);
    row(table, "word", "correction", counts_.word_correction);
    row(table, "sentence", "detection", counts_.sentence_detection);
    row(table, "sentence", "correction", counts_.sentence_correction);
    table.finish();
  }

 private:
  [[noreturn]] void refuse() const {
    throw InputError(
        input_name(path_),
        fmt::format("{} lines, expected as many as on standard input", references_.size()));
  }
  static void row(cli::Table& table, const char* level, const char* task,
                  const probe::CorrectionCount& count) {
    table.row({level, task, count.right, count.done, count.wanted, count.precision(),
               count.recall(), count.f1()});
  }

  std::string path_;
  std::optional<std::string> output_;
  std::string text_;
  std::vector<std::string_view> references_;
  std::size_t count_ = 0;
  std::string texts_;
  probe::CorrectionCounts counts_;
};

}  // namespace masque::lm_write
