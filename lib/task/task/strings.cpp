// The tasks that are a map from a string to another: rows of a table.
#include <algorithm>

#include "base/error.hpp"
#include "base/named_arguments.hpp"
#include "task/string_task.hpp"

namespace masque::task {

namespace {

using Symbols = std::vector<TokenId>;

Symbols same(Symbols symbols) { return symbols; }

Symbols reversed(Symbols symbols) {
  std::reverse(symbols.begin(), symbols.end());
  return symbols;
}

Symbols sorted(Symbols symbols) {
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

Symbols twice(Symbols symbols) {
  symbols.resize(2 * symbols.size());
  std::copy_n(symbols.begin(), symbols.size() / 2, symbols.begin() + std::ssize(symbols) / 2);
  return symbols;
}

/// x₁ x₃ x₅ … x₂ x₄ …, as the paper has it; its code puts x₂ x₄ … first.
Symbols odds_first(Symbols symbols) {
  Symbols out;
  out.reserve(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); i += 2) out.push_back(symbols[i]);
  for (std::size_t i = 1; i < symbols.size(); i += 2) out.push_back(symbols[i]);
  return out;
}

struct StringTaskRow {
  std::string_view name;
  std::string_view info;
  Index alphabet;  ///< standard value
  bool blanks;     ///< standard value
  StringTask::Map map;
  Index copies = 1;
};

constexpr StringTaskRow kStringTasks[] = {
    {"bucket_sort", "a string sorted; length: its symbols; Delétang et al. 2022, arXiv:2207.02098",
     5, true, sorted},
    {"copy", "a string repeated once; length: its symbols; Graves et al. 2014, arXiv:1410.5401", 16,
     false, same},
    {"duplicate_string",
     "a string twice; length: its symbols; Delétang et al. 2022, arXiv:2207.02098", 2, true, twice,
     2},
    {"odds_first",
     "symbols at odd positions, then those at even ones; length: symbols of the string; Delétang "
     "et al. 2022, arXiv:2207.02098",
     2, true, odds_first},
    {"reverse", "a string reversed; length: its symbols; Kazemnejad et al. 2023, arXiv:2305.19466",
     16, false, reversed},
    {"reverse_string",
     "a string reversed; length: its symbols; Delétang et al. 2022, arXiv:2207.02098", 2, true,
     reversed},
    {"sort", "a string sorted; length: its symbols; Kazemnejad et al. 2023, arXiv:2305.19466", 16,
     false, sorted},
};

std::unique_ptr<Task> make_string_task(NamedArguments& arguments) {
  const auto* row = std::ranges::find(kStringTasks, arguments.name(), &StringTaskRow::name);
  MASQUE_CHECK(row != std::end(kStringTasks));
  return std::make_unique<StringTask>(row->info, arguments, row->alphabet, row->blanks, row->map,
                                      row->copies);
}

/// Registers every row.
struct StringTaskRegistration {
  StringTaskRegistration() {
    for (const StringTaskRow& row : kStringTasks) TaskRegistration(row.name, make_string_task);
  }
};
const StringTaskRegistration kRegistration;

}  // namespace

}  // namespace masque::task
