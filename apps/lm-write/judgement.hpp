// Corrected texts against what they should be.
#pragma once

#include <cstdint>
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
#include "commands/result_format.hpp"
#include "kernel/precision.hpp"
#include "probe/write/correct.hpp"
#include "probe/write/correction_counts.hpp"

namespace masque::lm_write {

/// The texts of standard input against those of --reference.
class Judgement {
 public:
  /// `digits` of the shares that are printed; none: all.
  Judgement(const std::string& reference, const std::optional<std::string>& output,
            const std::optional<std::int64_t>& digits)
      : path_(reference),
        output_(output),
        number_(commands::ResultFormat::of(kernel::Precision::kF64, digits)) {
    text_ = commands::read_file(path_);
    references_ = split_terminated(text_, '\n');
  }

  void add(const probe::Line& line, const std::string& output) {
    if (count_ == references_.size()) refuse(fmt::format("{} or more", count_ + 1));
    counts_.add(line.text, output, without_return(references_[count_++]));
    if (output_) texts_ += output + "\n";
  }

  void print(const cli::CommonOptions& common, cli::Session& session) {
    if (count_ != references_.size()) refuse(std::to_string(count_));
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
  [[noreturn]] void refuse(const std::string& lines) const {
    throw InputError(input_name(path_), fmt::format("{} lines, expected {} as on standard input",
                                                    references_.size(), lines));
  }
  void row(cli::Table& table, const char* level, const char* task,
           const probe::CorrectionCount& count) const {
    table.row({level, task, count.right, count.done, count.wanted, number_.cell(count.precision()),
               number_.cell(count.recall()), number_.cell(count.f1())});
  }

  std::string path_;
  std::optional<std::string> output_;
  commands::ResultFormat number_;
  std::string text_;
  std::vector<std::string_view> references_;
  std::size_t count_ = 0;
  std::string texts_;
  probe::CorrectionCounts counts_;
};

}  // namespace masque::lm_write
