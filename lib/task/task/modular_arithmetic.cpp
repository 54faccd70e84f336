// modular_arithmetic: the value of an expression of residues with brackets around every operation.
// The paper's code calls it modular_arithmetic_brackets.
#include "base/named_arguments.hpp"
#include "task/arithmetic.hpp"

namespace masque::task {

namespace {

std::vector<std::string> texts(Index modulus) {
  std::vector<std::string> all = expression_texts(modulus);
  all.emplace_back("*");
  return all;
}

class ModularArithmetic final : public QuestionTask {
 public:
  ModularArithmetic(Index modulus, bool with_times, bool blanks)
      : QuestionTask(
            "the value of an expression with brackets; length: tokens of the question; Delétang et "
            "al. 2022, arXiv:2207.02098",
            texts(modulus), blanks),
        modulus_(modulus),
        with_times_(with_times) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    const Index value = random_expression(modulus_, length, with_times_, draw, question.prompt);
    question.answer = {static_cast<TokenId>(value)};
    return question;
  }

  Index modulus_;
  bool with_times_;
};

const TaskRegistration kRegistration("modular_arithmetic",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const Index modulus = arguments.count("modulus", 5, 2, 1000);
                                       const bool with_times = arguments.flag("times", true);
                                       return std::make_unique<ModularArithmetic>(
                                           modulus, with_times, read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
