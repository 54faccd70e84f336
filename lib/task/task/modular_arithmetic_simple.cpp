// modular_arithmetic_simple: the value of r ∘ r ∘ … ∘ r with +, − and ×, which binds tighter. An
// even length gives the question of the odd length below it. The paper's code calls it
// modular_arithmetic.
#include "base/named_arguments.hpp"
#include "task/arithmetic.hpp"

namespace masque::task {

namespace {

std::vector<std::string> equation_texts(Index modulus) {
  std::vector<std::string> all = numbered(modulus);
  all.insert(all.end(), {"+", "-", "*"});
  return all;
}

class ModularArithmeticSimple final : public QuestionTask {
 public:
  ModularArithmeticSimple(Index modulus, bool blanks)
      : QuestionTask(
            "the value of an expression without brackets; length: tokens of the question, if odd; "
            "Delétang et al. 2022, arXiv:2207.02098",
            equation_texts(modulus), blanks),
        modulus_(modulus) {}

 private:
  Index question_length(Index length) const override { return length - (length + 1) % 2; }
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    Index sum = 0;
    Index term = draw.below(modulus_);  // with its sign
    question.prompt.push_back(static_cast<TokenId>(term));
    while (std::ssize(question.prompt) < question_length(length)) {
      const Index sign = draw.below(3);
      const Index residue = draw.below(modulus_);
      question.prompt.push_back(static_cast<TokenId>(modulus_ + sign));
      question.prompt.push_back(static_cast<TokenId>(residue));
      if (sign == 2) {
        term = term * residue % modulus_;
      } else {
        sum += term;
        term = sign == 0 ? residue : modulus_ - residue;
      }
    }
    question.answer = {static_cast<TokenId>((sum + term) % modulus_)};
    return question;
  }

  Index modulus_;
};

const TaskRegistration kRegistration("modular_arithmetic_simple",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const Index modulus = arguments.count("modulus", 5, 2, 1000);
                                       return std::make_unique<ModularArithmeticSimple>(
                                           modulus, read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
