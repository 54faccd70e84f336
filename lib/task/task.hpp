// Synthetic tasks for length generalisation; tasks.cpp has them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random/random.hpp"
#include "base/types.hpp"

namespace masque {
class NamedArguments;
}

namespace masque::task {

/// Stands for a missing target; no id is negative.
constexpr TokenId kNoTarget = -1;

/// A sequence and what is to be predicted from it.
struct TaskExample {
  std::vector<TokenId> ids;      ///< Task::tokens() of them
  std::vector<TokenId> targets;  ///< one an id: what is to be predicted there, or kNoTarget
};

/// A task whose examples exist at any length. Immutable, thread-safe.
///
/// "Length" is the size that the task's source uses, e.g. the number of symbols to be copied;
/// `info()` says which. The number of tokens is `tokens(length)`, the same for all examples of a
/// length, so that they form batches; the ids after a shorter answer have no target.
class Task {
 public:
  virtual ~Task() = default;
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// The name, without parameters: "copy". Set by parse_task().
  const std::string& name() const { return name_; }
  /// The question, what is counted as length, and the source: author, year, identifier. A view of
  /// text that outlives the task.
  virtual std::string_view info() const = 0;
  /// Ids and targets are from 0 to vocab_size() − 1, at every length.
  virtual Index vocab_size() const = 0;
  /// How the token `id` is printed: "7", "+", "?". Different for each of 0 … vocab_size() − 1.
  virtual std::string token_text(TokenId id) const = 0;
  /// Whether answers are predicted from left to right: a target is then the id that follows, and
  /// the model must not see it. Otherwise a target belongs to its own position, the ids contain no
  /// answer, and any mask may be used under which that position reads the whole question.
  virtual bool causal() const = 0;
  virtual Index shortest() const = 0;  ///< length, at least 1
  virtual Index longest() const;       ///< length; 2^20 where the task knows no limit
  /// Ids of every example of `length`.
  virtual Index tokens(Index length) const = 0;

  /// The example that `stream` names: a function of the task with its parameters, the length and
  /// the stream. Cost O(tokens), quadratic for products and roots. Throws UsageError for a length
  /// outside of shortest() … longest().
  TaskExample example(Index length, const RandomStream& stream) const;

  /// Accuracy, over the targets of examples of `length`, of always predicting the most frequent
  /// target. Exact where a formula is known; else counted in 2^16 targets of a
  /// fixed stream (standard error at most 0.002) and rounded to 0.001. Same errors as `example`.
  double chance(Index length) const;

 protected:
  /// Makes an example of `length`, which has been checked, with random numbers from `draw` alone.
  /// It must have tokens(length) ids and as many targets.
  virtual TaskExample make(Index length, Draw& draw) const = 0;
  /// `chance` of `length` by a formula, or a negative number where none is known (the default).
  virtual double exact_chance(Index length) const;

 private:
  friend std::unique_ptr<const Task> parse_task(std::string_view text);
  void check_length(Index length) const;
  std::string name_;
};

/// Makes the task that `text` spells: a name and values of its parameters, "copy",
/// "copy(alphabet=26)"; other parameters have their defaults. Throws UsageError that names what is
/// possible.
std::unique_ptr<const Task> parse_task(std::string_view text);

/// Names of all tasks, sorted.
std::vector<std::string> task_names();

/// The parameters of the task `name` with their defaults: "alphabet=16, blanks=false"; empty if it
/// has none. Throws UsageError if there is no task of this name.
std::string task_parameters(std::string_view name);

// The kinds of tasks: a question and its answer, a map of strings, a target at every token.

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

// Tasks that turn a random string into another: copy, sort, ….

/// Question: `length` symbols, each uniform in 0 … alphabet − 1. Answer: `map` of them.
class StringTask final : public QuestionTask {
 public:
  /// Returns the answer to a question's symbols. It must return `copies` · n symbols for n symbols,
  /// in which every symbol is equally frequent on average: `chance` relies on it.
  using Map = std::vector<TokenId> (*)(std::vector<TokenId>);

  /// Reads the parameters `alphabet` (2 … 65536) and `blanks` from `arguments`; the parameters of
  /// these names are their defaults. Answers are those of `map` and have `copies` · length symbols.
  /// `info` is as in QuestionTask. Throws UsageError for other values.
  StringTask(std::string_view info, NamedArguments& arguments, Index alphabet, bool blanks, Map map,
             Index copies = 1);

 private:
  StringTask(std::string_view info, Index alphabet, bool blanks, Map map, Index copies);
  Index answer_length(Index length) const override { return copies_ * length; }
  Question ask(Index length, Draw& draw) const override;
  double exact_chance(Index length) const override;

  Index alphabet_;
  Map map_;
  Index copies_;
};

/// Returns `length` symbols, each uniform in 0 … alphabet − 1, with random numbers from `draw`.
std::vector<TokenId> random_string(Index length, Index alphabet, Draw& draw);

// Tasks with a target at every token of a random string.

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
