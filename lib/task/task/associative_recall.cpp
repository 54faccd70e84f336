// associative_recall: pairs of a key and a value, no key twice; then some or all keys again, in
// random order: each is followed by its value, which is the target. "k7 v2 k1 v5 k1 v5 k7 v2".
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/named_arguments.hpp"
#include "task/task.hpp"

namespace masque::task {

namespace {

class AssociativeRecall final : public Task {
 public:
  AssociativeRecall(Index keys, Index values, Index queries)
      : keys_(keys), values_(values), queries_(queries) {}

  std::string_view info() const override {
    return "the values of keys seen before; length: pairs; Arora et al. 2023, arXiv:2312.04927";
  }
  Index vocab_size() const override { return keys_ + values_; }
  std::string token_text(TokenId id) const override {
    MASQUE_CHECK(id >= 0 && id < vocab_size());
    return id < keys_ ? fmt::format("k{}", id) : fmt::format("v{}", id - keys_);
  }
  bool causal() const override { return true; }
  Index shortest() const override { return 1; }
  Index longest() const override { return keys_; }
  Index tokens(Index length) const override { return 2 * (length + query_count(length)); }

 private:
  Index query_count(Index length) const {
    return queries_ == 0 ? length : std::min(queries_, length);
  }

  TaskExample make(Index length, Draw& draw) const override {
    TaskExample example;
    const auto put = [&](Index key, Index value, bool is_target) {
      const auto value_id = static_cast<TokenId>(keys_ + value);
      example.ids.insert(example.ids.end(), {static_cast<TokenId>(key), value_id});
      example.targets.insert(example.targets.end(), {is_target ? value_id : kNoTarget, kNoTarget});
    };
    const std::vector<Index> keys = random_order(keys_, draw);
    std::vector<Index> values(static_cast<std::size_t>(length));
    for (std::size_t pair = 0; pair < values.size(); ++pair) {
      values[pair] = draw.below(values_);
      put(keys[pair], values[pair], false);
    }
    std::vector<Index> order = random_order(length, draw);
    order.resize(static_cast<std::size_t>(query_count(length)));
    for (const Index pair : order) {
      put(keys[static_cast<std::size_t>(pair)], values[static_cast<std::size_t>(pair)], true);
    }
    return example;
  }
  double exact_chance(Index /*length*/) const override { return 1 / static_cast<double>(values_); }

  Index keys_;
  Index values_;
  Index queries_;
};

const TaskRegistration kRegistration("associative_recall",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       const Index keys = arguments.count("keys", 512, 1, 65536);
                                       const Index values = arguments.count("values", 64, 2, 65536);
                                       const Index queries =
                                           arguments.count("queries", 0, 0, 65536);  // 0: every key
                                       if (queries > keys) {
                                         throw UsageError(fmt::format(
                                             "associative_recall: queries is {}, expected at most "
                                             "{}, the number of keys",
                                             queries, keys));
                                       }
                                       return std::make_unique<AssociativeRecall>(keys, values,
                                                                                  queries);
                                     });

}  // namespace

}  // namespace masque::task
