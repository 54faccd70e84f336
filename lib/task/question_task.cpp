#include "task/question_task.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/named_arguments.hpp"

namespace masque::task {

std::vector<std::string> numbered(Index count) {
  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) texts.push_back(fmt::to_string(i));
  return texts;
}

bool read_blanks(NamedArguments& arguments, bool standard) {
  return arguments.flag("blanks", standard);
}

QuestionTask::QuestionTask(std::string_view info, std::vector<std::string> symbols, bool blanks)
    : info_(info), symbols_(std::move(symbols)), blanks_(blanks) {}

std::string QuestionTask::token_text(TokenId id) const {
  MASQUE_CHECK(id >= 0 && id <= mark());
  return id == mark() ? "?" : symbols_[static_cast<std::size_t>(id)];
}

Index QuestionTask::tokens(Index length) const {
  return question_length(length) + answer_length(length) + (blanks_ ? 0 : 1);
}

TaskExample QuestionTask::make(Index length, Draw& draw) const {
  Question question = ask(length, draw);
  MASQUE_CHECK(std::ssize(question.prompt) == question_length(length) && !question.answer.empty() &&
               std::ssize(question.answer) <= answer_length(length));
  TaskExample example;
  example.ids = std::move(question.prompt);
  const std::size_t begin = example.ids.size();
  const auto all = static_cast<std::size_t>(tokens(length));
  example.ids.resize(all, mark());
  example.targets.resize(all, kNoTarget);
  const auto at = static_cast<std::ptrdiff_t>(begin);
  std::copy(question.answer.begin(), question.answer.end(), example.targets.begin() + at);
  if (!blanks_) {
    std::copy(question.answer.begin(), question.answer.end(), example.ids.begin() + at + 1);
  }
  return example;
}

}  // namespace masque::task
