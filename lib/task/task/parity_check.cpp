// parity_check: whether the number of ones is even (0) or odd (1).
#include <numeric>

#include "task/string_task.hpp"

namespace masque::task {

namespace {

class ParityCheck final : public QuestionTask {
 public:
  explicit ParityCheck(bool blanks)
      : QuestionTask(
            "whether the number of ones is odd; length: bits; Delétang et al. 2022, "
            "arXiv:2207.02098",
            numbered(2), blanks) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    std::vector<TokenId> bits = random_string(length, 2, draw);
    const TokenId ones = std::accumulate(bits.begin(), bits.end(), 0);
    return {std::move(bits), {ones % 2}};
  }
  double exact_chance(Index /*length*/) const override { return 0.5; }
};

const TaskRegistration kRegistration("parity_check",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       return std::make_unique<ParityCheck>(
                                           read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
