// addition: of two numbers of n digits; the sum has n + 1, zeros included. Digits are written from
// the largest to the smallest; `reversed` is what is written the other way: nothing, the sum, all.
#include <algorithm>
#include <array>

#include "base/named_arguments.hpp"
#include "task/string_task.hpp"

namespace masque::task {

namespace {

class Addition final : public QuestionTask {
 public:
  Addition(Index base, bool reversed_question, bool reversed_answer, bool blanks)
      : QuestionTask(
            "the sum of two numbers; length: digits of each; Nogueira et al. 2021, "
            "arXiv:2102.13019; reversed: Lee et al. 2023, arXiv:2307.03381",
            texts(base), blanks),
        base_(base),
        reversed_question_(reversed_question),
        reversed_answer_(reversed_answer) {}

 private:
  static std::vector<std::string> texts(Index base) {
    std::vector<std::string> all = numbered(base);
    all.emplace_back("+");
    return all;
  }
  Index question_length(Index length) const override { return 2 * length + 1; }
  Index answer_length(Index length) const override { return length + 1; }
  Question ask(Index length, Draw& draw) const override {
    const auto base = static_cast<TokenId>(base_);
    std::vector<TokenId> a = random_string(length, base_, draw);
    std::vector<TokenId> b = random_string(length, base_, draw);
    Question question;
    TokenId carry = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const TokenId digit = a[i] + b[i] + carry;
      question.answer.push_back(digit % base);
      carry = digit / base;
    }
    question.answer.push_back(carry);
    if (!reversed_answer_) std::reverse(question.answer.begin(), question.answer.end());
    if (!reversed_question_) {
      std::reverse(a.begin(), a.end());
      std::reverse(b.begin(), b.end());
    }
    question.prompt = std::move(a);
    question.prompt.push_back(base);
    question.prompt.insert(question.prompt.end(), b.begin(), b.end());
    return question;
  }

  Index base_;
  bool reversed_question_;
  bool reversed_answer_;
};

const TaskRegistration kRegistration(
    "addition", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      constexpr std::array<std::string_view, 3> kReversed = {"none", "answer", "all"};
      const Index base = arguments.count("base", 10, 2, 1000);
      const std::string reversed = arguments.choice("reversed", "none", kReversed);
      return std::make_unique<Addition>(base, reversed == "all", reversed != "none",
                                        read_blanks(arguments, false));
    });

}  // namespace

}  // namespace masque::task
