// even_token_prediction: the targets are the tokens at places 2, 4, 6, …, then a constant to the
// end.
#include "base/named_arguments.hpp"
#include "task/in_place_task.hpp"

namespace masque::task {

namespace {

class EvenTokenPrediction final : public InPlaceTask {
 public:
  EvenTokenPrediction(Index alphabet, bool ends)
      : InPlaceTask(
            "the tokens at even positions, then a constant; length: tokens without [CLS] and "
            "[SEP]; Luo et al. 2022, arXiv:2205.13401",
            alphabet, {"-"}, ends) {}

 private:
  std::vector<TokenId> targets(const std::vector<TokenId>& symbols) const override {
    std::vector<TokenId> all(symbols.size(), label(0));
    for (std::size_t i = 0; 2 * i + 1 < symbols.size(); ++i) all[i] = symbols[2 * i + 1];
    return all;
  }
  double exact_chance(Index length) const override {
    const Index guessed = length - length / 2;
    return static_cast<double>(guessed) / static_cast<double>(length);
  }
};

const TaskRegistration kRegistration("even_token_prediction",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const Index alphabet =
                                           arguments.count("alphabet", 980, 1, 65536);
                                       return std::make_unique<EvenTokenPrediction>(
                                           alphabet, arguments.flag("ends", false));
                                     });

}  // namespace

}  // namespace masque::task
