// missing_duplicate: a string of bits twice, one bit of the two hidden: which? An odd length ends
// with a filler. The paper's code calls it missing_duplicate_string.
#include "task/string_task.hpp"

namespace masque::task {

namespace {

constexpr TokenId kHidden = 2;
constexpr TokenId kFiller = 3;

class MissingDuplicate final : public QuestionTask {
 public:
  explicit MissingDuplicate(bool blanks)
      : QuestionTask(
            "the hidden bit of a string that occurs twice; length: tokens of the question; "
            "Delétang et al. 2022, arXiv:2207.02098",
            {"0", "1", "#", "-"}, blanks) {}
  Index shortest() const override { return 2; }

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    const std::vector<TokenId> once = random_string(length / 2, 2, draw);
    Question question;
    question.prompt = once;
    question.prompt.insert(question.prompt.end(), once.begin(), once.end());
    TokenId& hidden = question.prompt[static_cast<std::size_t>(draw.below(2 * (length / 2)))];
    question.answer = {hidden};
    hidden = kHidden;
    if (length % 2 == 1) question.prompt.push_back(kFiller);
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 0.5; }
};

const TaskRegistration kRegistration("missing_duplicate",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       return std::make_unique<MissingDuplicate>(
                                           read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
