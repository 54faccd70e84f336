// induction: what followed the mark the first time? The mark is at a random place of a random
// string and again at its end.
#include "base/named_arguments.hpp"
#include "task/string_task.hpp"

namespace masque::task {

namespace {

class Induction final : public QuestionTask {
 public:
  Induction(Index alphabet, bool blanks)
      : QuestionTask(
            "the symbol that followed the first of two marks; length: symbols, including both "
            "marks; Olsson et al. 2022, arXiv:2209.11895; Fu et al. 2022, arXiv:2212.14052",
            numbered(alphabet), blanks),
        alphabet_(alphabet) {}
  Index shortest() const override { return 3; }

 private:
  // The mark at the end is the one after every question.
  Index question_length(Index length) const override { return length - 1; }
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_string(length - 1, alphabet_, draw);
    const auto at = static_cast<std::size_t>(draw.below(length - 2));
    question.prompt[at] = mark();
    question.answer = {question.prompt[at + 1]};
    return question;
  }
  double exact_chance(Index /*length*/) const override {
    return 1 / static_cast<double>(alphabet_);
  }

  Index alphabet_;
};

const TaskRegistration kRegistration("induction",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const Index alphabet =
                                           arguments.count("alphabet", 16, 2, 65536);
                                       return std::make_unique<Induction>(
                                           alphabet, read_blanks(arguments, false));
                                     });

}  // namespace

}  // namespace masque::task
