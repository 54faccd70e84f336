// needle: names with their numbers, lost in random letters; at the end, one of the names: which
// number? "b d A 4 1 7 c a B 0 3 3 d A ?" asks for 4 1 7.
#include "base/named_arguments.hpp"
#include "task/string_task.hpp"

namespace masque::task {

namespace {

constexpr Index kDigits = 10;

/// Digits, letters of the haystack, names.
std::vector<std::string> texts(Index alphabet, Index needles) {
  std::vector<std::string> all = numbered(kDigits);
  for (const std::string& i : numbered(alphabet)) all.push_back("h" + i);
  for (const std::string& i : numbered(needles)) all.push_back("N" + i);
  return all;
}

class Needle final : public QuestionTask {
 public:
  Needle(Index needles, Index digits, Index alphabet, bool blanks)
      : QuestionTask(
            "the number that follows a name among random letters; length: haystack with needles; "
            "Mohtashami and Jaggi 2023, arXiv:2305.16300; Hsieh et al. 2024, arXiv:2404.06654",
            texts(alphabet, needles), blanks),
        needles_(needles),
        digits_(digits),
        alphabet_(alphabet) {}
  Index shortest() const override { return needles_ * (1 + digits_); }

 private:
  Index question_length(Index length) const override { return length + 1; }
  Index answer_length(Index /*length*/) const override { return digits_; }
  Question ask(Index length, Draw& draw) const override {
    const auto first_name = static_cast<TokenId>(kDigits + alphabet_);
    const Index wanted = draw.below(needles_);
    const std::vector<Index> order = random_order(needles_, draw);
    // A needle takes one slot, as a letter does: then all places are equally likely.
    const std::vector<bool> is_needle = random_subset(length - needles_ * digits_, needles_, draw);
    Question question;
    std::size_t needle = 0;
    for (const bool here : is_needle) {
      if (!here) {
        question.prompt.push_back(static_cast<TokenId>(kDigits + draw.below(alphabet_)));
        continue;
      }
      const Index name = order[needle++];
      const std::vector<TokenId> number = random_string(digits_, kDigits, draw);
      question.prompt.push_back(first_name + static_cast<TokenId>(name));
      question.prompt.insert(question.prompt.end(), number.begin(), number.end());
      if (name == wanted) question.answer = number;
    }
    question.prompt.push_back(first_name + static_cast<TokenId>(wanted));
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 1.0 / kDigits; }

  Index needles_;
  Index digits_;
  Index alphabet_;
};

const TaskRegistration kRegistration(
    "needle", [](NamedArguments& arguments) -> std::unique_ptr<Task> {
      const Index needles = arguments.count("needles", 1, 1, 1000);
      const Index digits = arguments.count("digits", 4, 1, 1000);
      const Index alphabet = arguments.count("alphabet", 16, 1, 65536);
      return std::make_unique<Needle>(needles, digits, alphabet, read_blanks(arguments, false));
    });

}  // namespace

}  // namespace masque::task
