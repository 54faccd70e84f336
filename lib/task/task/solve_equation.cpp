// solve_equation: an expression with brackets, one residue replaced by x, and its value: what is x?
// There is no product, so that there is one answer.
#include "base/named_arguments.hpp"
#include "task/arithmetic.hpp"

namespace masque::task {

namespace {

std::vector<std::string> solve_equation_texts(Index modulus) {
  std::vector<std::string> all = expression_texts(modulus);
  all.insert(all.end(), {"x", "="});
  return all;
}

class SolveEquation final : public QuestionTask {
 public:
  SolveEquation(Index modulus, bool blanks)
      : QuestionTask(
            "the value of x in an equation with +, - and brackets; length: tokens of the question; "
            "Delétang et al. 2022, arXiv:2207.02098",
            solve_equation_texts(modulus), blanks),
        modulus_(modulus) {}
  Index shortest() const override { return 3; }

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    const auto unknown = static_cast<TokenId>(modulus_ + 4);
    Question question;
    std::vector<TokenId>& ids = question.prompt;
    const Index value = random_expression(modulus_, length - 2, false, draw, ids);
    // The first residue from a random place on, as in the paper's code.
    auto at = static_cast<std::size_t>(draw.below(length - 2));
    while (ids[at] >= modulus_) at = (at + 1) % ids.size();
    question.answer = {ids[at]};
    ids[at] = unknown;
    ids.insert(ids.end(), {unknown + 1, static_cast<TokenId>(value)});
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 1 / static_cast<double>(modulus_); }

  Index modulus_;
};

const TaskRegistration kRegistration("solve_equation",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const Index modulus = arguments.count("modulus", 5, 2, 1000);
                                       return std::make_unique<SolveEquation>(
                                           modulus, read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
