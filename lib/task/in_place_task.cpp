#include "task/in_place_task.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "task/string_task.hpp"

namespace masque::task {

InPlaceTask::InPlaceTask(std::string_view info, Index alphabet, std::vector<std::string> labels,
                         bool ends)
    : info_(info), alphabet_(alphabet), labels_(std::move(labels)), ends_(ends) {}

Index InPlaceTask::vocab_size() const { return label(label_count()) + (ends_ ? 2 : 0); }

std::string InPlaceTask::token_text(TokenId id) const {
  MASQUE_CHECK(id >= 0 && id < vocab_size());
  if (id < alphabet_) return fmt::to_string(id);
  const Index i = id - alphabet_;
  if (i < label_count()) return labels_[static_cast<std::size_t>(i)];
  return i == label_count() ? "[CLS]" : "[SEP]";
}

TaskExample InPlaceTask::make(Index length, Draw& draw) const {
  TaskExample example;
  example.ids = random_string(length, alphabet_, draw);
  example.targets = targets(example.ids);
  if (ends_) {
    const TokenId first = label(label_count());
    example.ids.insert(example.ids.begin(), first);
    example.ids.push_back(first + 1);
    example.targets.insert(example.targets.begin(), kNoTarget);
    example.targets.push_back(kNoTarget);
  }
  return example;
}

}  // namespace masque::task
