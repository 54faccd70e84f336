// odds_first: x₁ x₂ … xₙ becomes x₁ x₃ x₅ … x₂ x₄ …, as the paper has it; its code puts x₂ x₄ …
// first.
#include "task/string_task.hpp"

namespace masque::task {

namespace {

std::vector<TokenId> answer_of(std::vector<TokenId> symbols) {
  std::vector<TokenId> out;
  out.reserve(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); i += 2) out.push_back(symbols[i]);
  for (std::size_t i = 1; i < symbols.size(); i += 2) out.push_back(symbols[i]);
  return out;
}

const TaskRegistration kRegistration(
    "odds_first", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      return std::make_unique<StringTask>(
          "odd places before even ones; length: symbols of the string; Delétang et al. 2022, "
          "arXiv:2207.02098",
          arguments, 2, true, answer_of);
    });

}  // namespace

}  // namespace masque::task
