// Quality of predicted labels: accuracy, F1, Matthews' correlation.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace masque::evaluate {

/// The confusion matrix. Results are those of scikit-learn.
class Confusion {
 public:
  /// An empty matrix of `labels` labels, at least 2.
  explicit Confusion(Index labels);

  /// Counts `count` cases in which `label` is correct and `predicted` was predicted, both from 0.
  void add(Index label, Index predicted, std::uint64_t count = 1);

  /// Number of labels.
  Index labels() const { return labels_; }
  /// How often `predicted` was predicted where `label` is correct.
  std::uint64_t at(Index label, Index predicted) const;
  /// All cases.
  std::uint64_t total() const;
  /// Cases in which the prediction is correct.
  std::uint64_t right() const;
  /// Share of the correct predictions, 0 … 1; 0 without any case.
  double accuracy() const;
  /// 2 tp / (2 tp + fp + fn): of two labels the second one's; of more the mean of all labels that
  /// occur or were predicted (macro). 0 where nothing is right.
  double f1() const;
  /// The mean over all labels that occur or were predicted, of two labels, too.
  double macro_f1() const;
  /// Matthews' correlation, of more than two labels by Gorodkin 2004,
  /// doi:10.1016/j.compbiolchem.2004.09.006; 0 if labels or predictions are all the same.
  double mcc() const;

 private:
  double mean_f1(Index first) const;

  Index labels_;
  std::vector<std::uint64_t> counts_;  ///< (label, predicted)
};

}  // namespace masque::evaluate
