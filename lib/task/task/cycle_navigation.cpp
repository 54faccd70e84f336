// cycle_navigation: where a walk on a circle of five places ends that begins at place 0.
#include <algorithm>
#include <array>

#include "task/string_task.hpp"

namespace masque::task {

namespace {

constexpr Index kPlaces = 5;
constexpr Index kMoves = 3;

std::vector<std::string> texts() {
  std::vector<std::string> all = numbered(kPlaces);
  all.insert(all.end(), {"-1", "+0", "+1"});
  return all;
}

class CycleNavigation final : public QuestionTask {
 public:
  explicit CycleNavigation(bool blanks)
      : QuestionTask(
            "the end of a walk on a cycle of five states; length: moves; Delétang et al. 2022, "
            "arXiv:2207.02098",
            texts(), blanks) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_string(length, kMoves, draw);
    Index place = 0;
    for (TokenId& move : question.prompt) {
      place = (place + move - 1 + kPlaces) % kPlaces;
      move += static_cast<TokenId>(kPlaces);
    }
    question.answer = {static_cast<TokenId>(place)};
    return question;
  }
  double exact_chance(Index length) const override {
    std::array<double, kPlaces> shares{1};
    for (Index move = 0; move < length; ++move) {
      std::array<double, kPlaces> next{};
      for (std::size_t place = 0; place < next.size(); ++place) {
        const double sum =
            shares[(place + kPlaces - 1) % kPlaces] + shares[place] + shares[(place + 1) % kPlaces];
        next[place] = sum / kMoves;
      }
      if (next == shares) break;  // the same for all longer walks
      shares = next;
    }
    return *std::ranges::max_element(shares);
  }
};

const TaskRegistration kRegistration("cycle_navigation",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       return std::make_unique<CycleNavigation>(
                                           read_blanks(arguments, true));
                                     });

}  // namespace

}  // namespace masque::task
