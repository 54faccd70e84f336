// position_identification: the target of the i-th token is i, whatever the token is.
#include "base/named_arguments.hpp"
#include "task/in_place_task.hpp"

namespace masque::task {

namespace {

class PositionIdentification final : public InPlaceTask {
 public:
  PositionIdentification(Index alphabet, Index longest, bool ends)
      : InPlaceTask(
            "the position of every token; length: tokens without [CLS] and [SEP]; Luo et al. 2022, "
            "arXiv:2205.13401",
            alphabet, texts(longest), ends) {}
  Index longest() const override { return label_count(); }

 private:
  static std::vector<std::string> texts(Index longest) {
    std::vector<std::string> all;
    all.reserve(static_cast<std::size_t>(longest));
    for (Index i = 1; i <= longest; ++i) all.push_back("p" + std::to_string(i));
    return all;
  }
  std::vector<TokenId> targets(const std::vector<TokenId>& symbols) const override {
    std::vector<TokenId> all(symbols.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = label(static_cast<Index>(i));
    return all;
  }
  double exact_chance(Index length) const override { return 1 / static_cast<double>(length); }
};

const TaskRegistration kRegistration("position_identification",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const Index alphabet =
                                           arguments.count("alphabet", 980, 1, 65536);
                                       const Index longest =
                                           arguments.count("longest", 1024, 1, 65536);
                                       return std::make_unique<PositionIdentification>(
                                           alphabet, longest, arguments.flag("ends", false));
                                     });

}  // namespace

}  // namespace masque::task
