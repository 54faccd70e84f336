// copy: x₁ … xₙ becomes x₁ … xₙ.
#include "task/string_task.hpp"

namespace masque::task {

namespace {

std::vector<TokenId> answer_of(std::vector<TokenId> symbols) { return symbols; }

const TaskRegistration kRegistration(
    "copy", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      return std::make_unique<StringTask>(
          "a string again; length: its symbols; Graves et al. 2014, arXiv:1410.5401", arguments, 16,
          false, answer_of);
    });

}  // namespace

}  // namespace masque::task
