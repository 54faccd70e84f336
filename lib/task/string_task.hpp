// Tasks that turn a random string into another: copy, sort, ….
#pragma once

#include <string_view>
#include <vector>

#include "task/question_task.hpp"

namespace masque::task {

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

}  // namespace masque::task
