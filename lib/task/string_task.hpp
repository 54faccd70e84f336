// Tasks that turn a random string into another: copy, sort, ….
#pragma once

#include <string_view>
#include <vector>

#include "task/question_task.hpp"

namespace masque::task {

/// Question: `length` symbols, each uniform in 0 … alphabet − 1. Answer: `map` of them.
class StringTask final : public QuestionTask {
 public:
  /// Must return `copies` · n symbols for n, in which every symbol is equally frequent on average.
  using Map = std::vector<TokenId> (*)(std::vector<TokenId>);

  /// Asks `arguments` for `alphabet` and `blanks`.
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

/// `length` symbols, each uniform in 0 … alphabet − 1.
std::vector<TokenId> random_string(Index length, Index alphabet, Draw& draw);

}  // namespace masque::task
