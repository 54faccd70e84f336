// bucket_sort: the symbols of a string in increasing order, of five symbols.
#include <algorithm>

#include "task/string_task.hpp"

namespace masque::task {

namespace {

std::vector<TokenId> answer_of(std::vector<TokenId> symbols) {
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

const TaskRegistration kRegistration(
    "bucket_sort", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      return std::make_unique<StringTask>(
          "a string in order; length: its symbols; Delétang et al. 2022, arXiv:2207.02098",
          arguments, 5, true, answer_of);
    });

}  // namespace

}  // namespace masque::task
