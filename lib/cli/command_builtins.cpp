// What every command answers by itself: help, version, manual page, completion.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/completion.hpp"
#include "cli/experiment.hpp"
#include "cli/man_page.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

namespace {

Entry builtin(std::string names, std::string help, std::vector<std::string> words = {}) {
  return {.names = std::move(names),
          .value = fmt::format("{}", fmt::join(words, "|")),
          .help = std::move(help),
          .initial = {},
          .words = words,
          .set = [](const std::string&) {}};
}

}  // namespace

std::vector<Entry> Command::entries() const {
  std::vector<Entry> all = entries_;
  if (experiment_ != ExperimentFile::kNone) {
    Entry file = builtin("--experiment",
                         "reads options from a file: lines 'key = value', keys without dashes");
    file.value = "FILE";
    all.push_back(file);
    all.push_back(builtin("--print-experiment",
                          "prints all options and values as an experiment file, and exits"));
    if (experiment_ == ExperimentFile::kArgument) {
      file.names = kFileArgument;
      file.value.clear();
      file.help = "experiment file, as for --experiment";
      file.positional = true;
      all.push_back(file);
    }
  }
  all.push_back(builtin("-h,--help", "prints examples, arguments and options"));
  if (parent_ != nullptr) return all;
  all.push_back(builtin("--version", "prints the version"));
  all.push_back(
      builtin("--man", "prints the manual page of all commands; read it with 'man -l -'"));
  all.push_back(
      builtin("--completion", "prints a completion script for this shell", completion_shells()));
  return all;
}

std::string Command::builtin_text(const std::function<bool(const char*)>& given,
                                  const Typed& typed) const {
  if (given("--help")) return help();
  if (parent_ != nullptr) return "";
  if (given("--version")) {
    std::string text = fmt::format("{} (masque) {}\n", name_, kVersion);
    for (const auto& line : version_lines_) text += line() + "\n";
    return text;
  }
  if (given("--man")) return man_page(*this);
  if (!given("--completion")) return "";
  return completion(*this,
                    find_word("--completion", completion_shells(), typed("--completion").back()));
}

}  // namespace masque::cli
