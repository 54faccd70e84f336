// stack_manipulation: a stack of bits from its bottom, then pushes and pops; what is left, from its
// top, then ".". Pops of an empty stack do nothing.
#include "task/string_task.hpp"

namespace masque::task {

namespace {

constexpr TokenId kPop = 2;
constexpr TokenId kPush0 = 3;
constexpr TokenId kEnd = 5;

class StackManipulation final : public QuestionTask {
 public:
  explicit StackManipulation(bool blanks)
      : QuestionTask(
            "the stack after pushes and pops; length: tokens of the question; Delétang et al. "
            "2022, arXiv:2207.02098",
            {"0", "1", "pop", "push0", "push1", "."}, blanks) {}

 private:
  Index answer_length(Index length) const override { return length + 1; }
  Question ask(Index length, Draw& draw) const override {
    const Index height = length == 1 ? 1 : 1 + draw.below(length - 1);
    std::vector<TokenId> stack = random_string(height, 2, draw);
    Question question;
    question.prompt = stack;
    while (std::ssize(question.prompt) < length) {
      const auto action = static_cast<TokenId>(kPop + draw.below(3));
      question.prompt.push_back(action);
      if (action != kPop) {
        stack.push_back(action - kPush0);
      } else if (!stack.empty()) {
        stack.pop_back();
      }
    }
    question.answer.assign(stack.rbegin(), stack.rend());
    question.answer.push_back(kEnd);
    return question;
  }
};

const TaskRegistration kRegistration("stack_manipulation",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       return std::make_unique<StackManipulation>(
                                           read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
