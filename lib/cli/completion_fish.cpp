// One "complete" line per sub-command and option, under the condition that the words before the
// cursor begin with the command's.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.hpp"
#include "cli/completion.hpp"

namespace masque::cli {

namespace {

/// In single quotes for fish, where a backslash escapes.
std::string fish_quoted(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled.append(c == '\\' ? 2 : 1, c);
  return shell_quoted(doubled, "\\'");
}

/// " -s o -l output".
std::string names_of(const Entry& entry) {
  std::string out;
  for (const std::string& name : entry.spellings()) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return out;
}

std::string value_of(const Entry& entry, const std::string& condition) {
  if (entry.is_flag()) return "";
  switch (completion_kind_of(entry)) {
    case CompletionKind::kWords:
      return " -x -a " + fish_quoted(fmt::format("{}", fmt::join(entry.words, " ")));
    case CompletionKind::kFiles: return fmt::format(" -r -F -a '({}_hub)'", condition);
    case CompletionKind::kFolders: return " -x -a '(__fish_complete_directories)'";
    case CompletionKind::kNothing: break;
  }
  return " -x";
}

/// `words` are those of the command without the tool's name.
void append_command(std::string& out, const Command& command, const Command& tool,
                    const std::string& condition, const std::string& words) {
  const bool branch = !command.subcommands().empty();
  const std::string when =
      fish_quoted(fmt::format("{}_{}{}", condition, branch ? "at" : "in", words));
  const std::string start = fmt::format("complete -c {} -n {}", tool.name(), when);
  const std::vector<Entry> all = command.entries();
  const bool takes_files =
      std::any_of(all.begin(), all.end(), [](const Entry& entry) { return entry.positional; });
  out += start + (takes_files ? fmt::format(" -a '({}_hub)'\n", condition) : " -f\n");
  for (const auto& child : command.subcommands()) {
    out += fmt::format("{} -a {} -d {}\n", start, child->name(), fish_quoted(child->summary()));
  }
  for (const Entry& entry : all) {
    if (entry.positional) continue;
    out += fmt::format("{}{}{} -d {}\n", start, names_of(entry), value_of(entry, condition),
                       fish_quoted(entry.help));
  }
  for (const auto& child : command.subcommands()) {
    append_command(out, *child, tool, condition, words + " " + child->name());
  }
}

}  // namespace

std::string fish_completion(const Command& tool) {
  std::string condition = "__" + tool.name();
  std::replace(condition.begin(), condition.end(), '-', '_');
  std::string out = fmt::format(
      "# Completes {0} (masque {1}) in fish: {0} --completion fish | source\n"
      "# Whether the words before the cursor begin with these, after the tool's name.\n"
      "function {2}_in\n"
      "    set -l words (commandline -opc)[2..-1]\n"
      "    set -l n (count $argv)\n"
      "    test $n -eq 0; or test \"$words[1..$n]\" = \"$argv\"\n"
      "end\n"
      "# The same, and no further sub-command.\n"
      "function {2}_at\n"
      "    set -l words (commandline -opc)[2..-1]\n"
      "    set -l next (math (count $argv) + 1)\n"
      "    {2}_in $argv; and not string match -qr -- '^[^-]' \"$words[$next]\"\n"
      "end\n"
      "# Names of models of the local Hugging Face cache, after hf:.\n"
      "function {2}_hub\n"
      "    string match -q 'hf:*' -- (commandline -ct); and {0} --completion {3}\n"
      "end\n",
      tool.name(), kVersion, condition, kCompletionHub);
  append_command(out, tool, tool, condition, "");
  return out;
}

}  // namespace masque::cli
