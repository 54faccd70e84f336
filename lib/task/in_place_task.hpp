// Tasks with a target at every token of a random string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "task/task.hpp"

namespace masque::task {

/// `length` symbols, uniform in 0 … alphabet − 1, between [CLS] and [SEP] if there are `ends`; the
/// ids after the alphabet are those of `labels`, then the ends. Every symbol has a target, the ends
/// have none. alphabet = 1 is the zero probe: all symbols are the same.
class InPlaceTask : public Task {
 public:
  std::string_view info() const override { return info_; }
  Index vocab_size() const override;
  std::string token_text(TokenId id) const override;
  bool causal() const override { return false; }
  Index shortest() const override { return 1; }
  /// `length` symbols, and both ends if there are any.
  Index tokens(Index length) const override { return length + (ends_ ? 2 : 0); }

 protected:
  /// Ids 0 … alphabet − 1 are symbols, the next ones have the texts `labels`; with `ends` the last
  /// two are [CLS] and [SEP]. `info` is that of Task::info() and must outlive the task.
  InPlaceTask(std::string_view info, Index alphabet, std::vector<std::string> labels, bool ends);

  /// Number of labels.
  Index label_count() const { return std::ssize(labels_); }
  /// The id of label `i`, which counts from 0.
  TokenId label(Index i) const { return static_cast<TokenId>(alphabet_ + i); }
  /// Returns the targets of `symbols`, one id a symbol.
  virtual std::vector<TokenId> targets(const std::vector<TokenId>& symbols) const = 0;

 private:
  TaskExample make(Index length, Draw& draw) const final;

  std::string_view info_;
  Index alphabet_;
  std::vector<std::string> labels_;
  bool ends_;
};

}  // namespace masque::task
