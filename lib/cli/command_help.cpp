// The text of --help, from the same declarations that parsing follows.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.hpp"

namespace masque::cli {

namespace {

void append_wrapped(std::string& out, const std::string& left, const std::string& text) {
  constexpr std::size_t kColumn = 28;
  constexpr std::size_t kWidth = 100;
  std::string line = fmt::format("  {}", left);
  if (line.size() + 2 > kColumn) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kColumn, ' ');
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() + end - at > kWidth && line.size() > kColumn) {
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
      line.assign(kColumn, ' ');
    }
    line += text.substr(at, end - at) + " ";
    at = end + 1;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

}  // namespace

std::string Command::help() const {
  const std::vector<Entry> all = entries();
  std::string out;
  if (!examples_.empty()) {
    out += "Examples:\n";
    for (const auto& [command_line, what] : examples_) {
      out += fmt::format("  {}\n      {}\n", command_line, what);
    }
    out += "\n";
  }
  out += fmt::format("{}: {}\n\nUsage: {}", full_name(), summary_, full_name());
  if (!subcommands_.empty() && !action_) out += " COMMAND …";
  for (const Entry& entry : all) {
    if (!entry.positional) continue;
    const std::string name = entry.names + (entry.repeated ? "…" : "");
    out += entry.required ? " " + name : fmt::format(" [{}]", name);
  }
  for (const Entry& entry : all) {
    if (!entry.positional && entry.required) {
      out += fmt::format(" {} {}", entry.spellings().front(), entry.value);
    }
  }
  out += subcommands_.empty() || action_ ? " [OPTIONS]\n" : "\n";
  if (!subcommands_.empty() && action_) out += fmt::format("   or: {} COMMAND …\n", full_name());
  if (!subcommands_.empty()) {
    out += "\nCommands:\n";
    for (const auto& child : subcommands_) append_wrapped(out, child->name_, child->summary_);
  }
  const auto section = [&](const char* title, bool positional) {
    bool first = true;
    for (const Entry& entry : all) {
      if (entry.positional != positional) continue;
      if (std::exchange(first, false)) out += fmt::format("\n{}:\n", title);
      std::string left = fmt::format("{}", fmt::join(entry.spellings(), ", "));
      if (!entry.value.empty()) left += " " + entry.value;
      append_wrapped(
          out, left,
          entry.initial.empty() ? entry.help : fmt::format("{} [{}]", entry.help, entry.initial));
    }
  };
  section("Arguments", true);
  section("Options", false);
  if (!subcommands_.empty())
    out += fmt::format("\n'{} COMMAND --help' shows the options of a command.\n", full_name());
  out +=
      "\nExit codes: 0 success; 1 success, and the answer is no; 2 wrong command line; 3 bad input "
      "or a failed "
      "system call; 4 a bug.\n";
  return out;
}

}  // namespace masque::cli
