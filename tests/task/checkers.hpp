// The answers of question tasks computed a second time, from the printed question.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "task/task.hpp"

namespace masque::test {

using Words = std::vector<std::string>;

/// A question task's example as it is printed.
struct Printed {
  Words question;  ///< before the first target's place
  Words answer;    ///< the targets
};
Printed printed(const task::Task& task, const task::TaskExample& example);

/// By the name of a task with its standard parameters: whether an answer is right. Question tasks
/// only.
const std::map<std::string, std::function<bool(const Words& question, const Words& answer)>>&
checkers();

}  // namespace masque::test
