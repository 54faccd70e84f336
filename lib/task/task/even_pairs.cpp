// even_pairs: whether the number of places where 0 meets 1 is even (0) or odd (1).
#include "task/string_task.hpp"

namespace masque::task {

namespace {

class EvenPairs final : public QuestionTask {
 public:
  explicit EvenPairs(bool blanks)
      : QuestionTask(
            "whether 01 and 10 together occur an even (0) or odd (1) number of times; length: "
            "bits; Delétang et al. 2022, "
            "arXiv:2207.02098",
            numbered(2), blanks) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    std::vector<TokenId> bits = random_string(length, 2, draw);
    const bool odd = bits.front() != bits.back();  // every change is undone by the next one
    return {std::move(bits), {odd ? 1 : 0}};
  }
  double exact_chance(Index length) const override { return length == 1 ? 1 : 0.5; }
};

const TaskRegistration kRegistration("even_pairs",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       return std::make_unique<EvenPairs>(
                                           read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
