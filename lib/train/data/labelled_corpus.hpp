// Texts with labels: lines of tab-separated columns to a corpus.
#pragma once

#include <string>
#include <vector>

#include "train/data/corpus.hpp"

namespace masque::train {

/// How read_labelled() reads a file.
struct LabelledOptions {
  /// One or two: numbers from 1, or with `header` names.
  std::vector<std::string> text_columns = {"1"};
  std::string label_column = "2";  ///< number or name, as in `text_columns`
  bool header = false;             ///< the first line names the columns
  Index length = 128;              ///< most tokens of a text, those of the template included
  /// CorpusOptions::policy
  evaluate::LengthPolicy::Kind policy = evaluate::LengthPolicy::Kind::kFirst;
};

/// One text or pair of texts an item, and its label as it stands in the file.
struct LabelledCorpus {
  std::string path;                 ///< for messages
  Corpus corpus;                    ///< the texts or pairs
  std::vector<std::string> labels;  ///< one an item
  std::vector<Index> lines;         ///< the line of each item, from 1
};

/// Reads the file or pipe `path`, or for "-" standard input, as `options` say, with the ids of
/// `tokenizer`. Columns are as they stand, without quotes; one text is cut at its end, of two the
/// longer one first (CorpusFormat), or as the policy says. Throws
/// InputError for a file without lines, a column that is not there, a label that is empty or not
/// UTF-8 and a text without a token (by line), and without `header` for a first line whose label
/// can only name its column (all others are numbers, or it is called "label" or the like);
/// UsageError for columns that are no numbers or names, or the same one twice; and as
/// LineEncoder::LineEncoder.
LabelledCorpus read_labelled(const std::string& path, const text::Tokenizer& tokenizer,
                             const LabelledOptions& options);

/// Returns the different labels of `corpus`: by value if all are whole numbers, else by bytes.
/// Throws InputError if there is but one.
std::vector<std::string> label_names(const LabelledCorpus& corpus);

/// Returns the label of each item of `corpus` as a number. Throws InputError for one that is no
/// number from −1e30 to 1e30, by line.
std::vector<double> label_values(const LabelledCorpus& corpus);

/// Returns the label of each item of `corpus` as its place among `names`. Throws InputError for one
/// that is not among them, by line.
std::vector<TokenId> label_numbers(const LabelledCorpus& corpus,
                                   const std::vector<std::string>& names);

}  // namespace masque::train
