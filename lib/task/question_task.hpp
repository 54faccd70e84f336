// Tasks that are a question and an answer: how both become ids and targets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "task/task.hpp"

namespace masque::task {

/// Returns the texts of an alphabet's symbols: "0", "1", …, `count` of them.
std::vector<std::string> numbered(Index count);

/// Reads the parameter `blanks` of every question task from `arguments`: true or false, `standard`
/// where it is not given. Throws UsageError for another value.
bool read_blanks(NamedArguments& arguments, bool standard);

/// A question and its answer in symbols, laid out in one of two ways, here for the question 0 1 and
/// the answer 1 0 (the mark "?" is the last id of the vocabulary):
///     causal   ids 0 1 ? 1 0   targets - - 1 0 -    the answer is read while it is written
///     blanks   ids 0 1 ? ?     targets - - 1 0      all at once; Delétang et al. 2022,
///                                                   arXiv:2207.02098
/// A shorter answer than answer_length() is filled with "?" that have no target.
class QuestionTask : public Task {
 public:
  std::string_view info() const override { return info_; }
  Index vocab_size() const override { return std::ssize(symbols_) + 1; }
  std::string token_text(TokenId id) const override;
  bool causal() const override { return !blanks_; }
  Index shortest() const override { return 1; }
  /// question_length() + answer_length(), and one for the mark if causal().
  Index tokens(Index length) const override;

 protected:
  /// A question with its answer, before both are laid out.
  struct Question {
    std::vector<TokenId> prompt;  ///< question_length() ids
    std::vector<TokenId> answer;  ///< 1 … answer_length() ids
  };

  /// The ids 0, 1, … have the texts `symbols`; the mark is the id after them. With `blanks` the
  /// answer is predicted all at once, else from left to right. `info` is that of Task::info() and
  /// must outlive the task.
  QuestionTask(std::string_view info, std::vector<std::string> symbols, bool blanks);

  /// The id of "?".
  TokenId mark() const { return static_cast<TokenId>(symbols_.size()); }
  /// Ids of the question of an example of `length`; the same for all of them.
  virtual Index question_length(Index length) const { return length; }
  /// The most ids that the answer of an example of `length` can have; at least 1.
  virtual Index answer_length(Index length) const = 0;
  /// Makes a question of `length` and its answer, with random numbers from `draw` alone.
  virtual Question ask(Index length, Draw& draw) const = 0;

 private:
  TaskExample make(Index length, Draw& draw) const final;

  std::string_view info_;
  std::vector<std::string> symbols_;
  bool blanks_;
};

}  // namespace masque::task
