#include "task/string_task.hpp"

#include "base/named_arguments.hpp"

namespace masque::task {

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

}  // namespace masque::task
