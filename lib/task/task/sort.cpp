// sort: the symbols of a string in increasing order.
#include <algorithm>

#include "task/string_task.hpp"

namespace masque::task {

namespace {

std::vector<TokenId> answer_of(std::vector<TokenId> symbols) {
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

const TaskRegistration kRegistration(
    "sort", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      return std::make_unique<StringTask>(
          "a string in order; length: its symbols; Kazemnejad et al. 2023, arXiv:2305.19466",
          arguments, 16, false, answer_of);
    });

}  // namespace

}  // namespace masque::task
