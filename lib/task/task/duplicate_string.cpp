// duplicate_string: x₁ … xₙ becomes x₁ … xₙ x₁ … xₙ.
#include <algorithm>

#include "task/string_task.hpp"

namespace masque::task {

namespace {

std::vector<TokenId> answer_of(std::vector<TokenId> symbols) {
  symbols.resize(2 * symbols.size());
  std::copy_n(symbols.begin(), symbols.size() / 2, symbols.begin() + std::ssize(symbols) / 2);
  return symbols;
}

const TaskRegistration kRegistration(
    "duplicate_string", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      return std::make_unique<StringTask>(
          "a string twice; length: its symbols; Delétang et al. 2022, arXiv:2207.02098", arguments,
          2, true, answer_of, 2);
    });

}  // namespace

}  // namespace masque::task
