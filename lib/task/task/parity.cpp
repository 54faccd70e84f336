// parity: of bits, at once or after every bit ("steps"), which spells the way to the answer out.
#include "base/named_arguments.hpp"
#include "task/string_task.hpp"

namespace masque::task {

namespace {

class Parity final : public QuestionTask {
 public:
  Parity(bool steps, bool blanks)
      : QuestionTask(
            "whether the number of ones is odd; with steps=true after every bit; length: bits; "
            "Anil et al. 2022, arXiv:2207.04901",
            numbered(2), blanks),
        steps_(steps) {}

 private:
  Index answer_length(Index length) const override { return steps_ ? length : 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_string(length, 2, draw);
    TokenId odd = 0;
    for (std::size_t i = 0; i < question.prompt.size(); ++i) {
      odd ^= question.prompt[i];
      if (steps_ || i + 1 == question.prompt.size()) question.answer.push_back(odd);
    }
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 0.5; }

  bool steps_;
};

const TaskRegistration kRegistration("parity",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const bool steps = arguments.flag("steps", false);
                                       return std::make_unique<Parity>(
                                           steps, read_blanks(arguments, false));
                                     });

}  // namespace

}  // namespace masque::task
