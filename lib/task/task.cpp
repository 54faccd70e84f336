#include "task/task.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/named_arguments.hpp"

namespace masque::task {

Index Task::longest() const { return Index{1} << 20; }

double Task::exact_chance(Index /*length*/) const { return -1; }

void Task::check_length(Index length) const {
  if (length >= shortest() && length <= longest()) return;
  throw UsageError(
      fmt::format("{}: the length is {}, expected {} to {}", name_, length, shortest(), longest()));
}

TaskExample Task::example(Index length, const RandomStream& stream) const {
  check_length(length);
  Draw draw(stream);
  TaskExample example = make(length, draw);
  MASQUE_CHECK(std::ssize(example.ids) == tokens(length) &&
               example.targets.size() == example.ids.size());
  return example;
}

double Task::chance(Index length) const {
  check_length(length);
  if (const double exact = exact_chance(length); exact >= 0) return exact;
  constexpr Index kEnough = Index{1} << 16;
  std::vector<Index> counts(static_cast<std::size_t>(vocab_size()), 0);
  Index all = 0;
  for (std::uint64_t item = 0; all < kEnough; ++item) {
    for (const TokenId target : example(length, RandomStream(0, "task chance", item)).targets) {
      if (target == kNoTarget) continue;
      ++counts[static_cast<std::size_t>(target)];
      ++all;
    }
  }
  const double share = static_cast<double>(*std::max_element(counts.begin(), counts.end())) /
                       static_cast<double>(all);
  constexpr double kDigits = 1000;  // more would be noise
  return std::round(share * kDigits) / kDigits;
}

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

std::vector<TokenId> random_string(Index length, Index alphabet, Draw& draw) {
  std::vector<TokenId> symbols(static_cast<std::size_t>(length));
  for (TokenId& symbol : symbols) symbol = static_cast<TokenId>(draw.below(alphabet));
  return symbols;
}

// Braces keep the order: parameters are listed as they are requested.
StringTask::StringTask(std::string_view info, NamedArguments& arguments, Index alphabet,
                       bool blanks, Map map, Index copies)
    : StringTask{info, arguments.count("alphabet", alphabet, 2, 65536),
                 read_blanks(arguments, blanks), map, copies} {}

StringTask::StringTask(std::string_view info, Index alphabet, bool blanks, Map map, Index copies)
    : QuestionTask(info, numbered(alphabet), blanks),
      alphabet_(alphabet),
      map_(map),
      copies_(copies) {}

QuestionTask::Question StringTask::ask(Index length, Draw& draw) const {
  Question question;
  question.prompt = random_string(length, alphabet_, draw);
  question.answer = map_(question.prompt);
  return question;
}

double StringTask::exact_chance(Index /*length*/) const {
  return 1 / static_cast<double>(alphabet_);
}

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
