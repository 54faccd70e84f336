// reverse_string: x₁ … xₙ becomes xₙ … x₁, of two symbols.
#include <algorithm>

#include "task/string_task.hpp"

namespace masque::task {

namespace {

std::vector<TokenId> answer_of(std::vector<TokenId> symbols) {
  std::reverse(symbols.begin(), symbols.end());
  return symbols;
}

const TaskRegistration kRegistration(
    "reverse_string", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      return std::make_unique<StringTask>(
          "a string from its end; length: its symbols; Delétang et al. 2022, arXiv:2207.02098",
          arguments, 2, true, answer_of);
    });

}  // namespace

}  // namespace masque::task
