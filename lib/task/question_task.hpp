// Tasks that are a question and an answer: how both become ids and targets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "task/task.hpp"

namespace masque::task {

/// Digits or letters of an alphabet: "0", "1", … `count` texts.
std::vector<std::string> numbered(Index count);

/// The parameter `blanks` of every question task.
bool read_blanks(NamedArguments& arguments, bool standard);

/// A question and its answer in symbols, laid out in one of two ways, here for the question 0 1 and
/// the answer 1 0 (the mark "?" is the last id of the vocabulary):
///     causal   ids 0 1 ? 1 0   targets - - 1 0 -    the answer is read while it is written
///     blanks   ids 0 1 ? ?     targets - - 1 0      all at once; Delétang et al. 2022
/// A shorter answer than answer_length() is filled with "?" that have no target.
class QuestionTask : public Task {
 public:
  std::string_view info() const override { return info_; }
  Index vocab_size() const override { return std::ssize(symbols_) + 1; }
  std::string token_text(TokenId id) const override;
  bool causal() const override { return !blanks_; }
  Index shortest() const override { return 1; }
  Index tokens(Index length) const override;

 protected:
  struct Question {
    std::vector<TokenId> prompt;  ///< question_length() ids
    std::vector<TokenId> answer;  ///< 1 … answer_length() ids
  };

  /// info     as Task::info(), lives as long as the program
  /// symbols  texts of the ids 0, 1, …
  QuestionTask(std::string_view info, std::vector<std::string> symbols, bool blanks);

  TokenId mark() const { return static_cast<TokenId>(symbols_.size()); }
  virtual Index question_length(Index length) const { return length; }
  virtual Index answer_length(Index length) const = 0;  ///< the most that is possible
  virtual Question ask(Index length, Draw& draw) const = 0;

 private:
  TaskExample make(Index length, Draw& draw) const final;

  std::string_view info_;
  std::vector<std::string> symbols_;
  bool blanks_;
};

}  // namespace masque::task
