// Synthetic tasks for length generalisation; tasks.cpp has them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
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

}  // namespace masque::task
