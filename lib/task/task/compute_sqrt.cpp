// compute_sqrt: the whole part of a square root in binary, largest digits first: 1 0 0 1 0 1
// becomes 1 1 0.
#include <algorithm>

#include "task/arithmetic.hpp"

namespace masque::task {

namespace {

class ComputeSqrt final : public QuestionTask {
 public:
  explicit ComputeSqrt(bool blanks)
      : QuestionTask(
            "the integer square root of a binary number; length: its digits; Delétang et al. 2022, "
            "arXiv:2207.02098",
            numbered(2), blanks) {}

 private:
  Index answer_length(Index length) const override { return (length + 1) / 2; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_bits(length, draw);
    question.answer = square_root(question.prompt);
    std::reverse(question.prompt.begin(), question.prompt.end());
    std::reverse(question.answer.begin(), question.answer.end());
    return question;
  }
};

const TaskRegistration kRegistration("compute_sqrt",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       return std::make_unique<ComputeSqrt>(
                                           read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
