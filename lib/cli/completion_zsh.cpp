// A function per command, made of _arguments; one with sub-commands calls those of its children.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.hpp"
#include "cli/completion.hpp"

namespace masque::cli {

namespace {

/// `text` with a backslash before what _arguments and _describe take for their own.
std::string spec(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\:[]()").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// ":what:how" of a value.
std::string value_spec(const std::string& name, const Entry& entry, const std::string& paths) {
  std::string how = " ";
  switch (completion_kind_of(entry)) {
    case CompletionKind::kWords:
      how.clear();
      for (const std::string& word : entry.words) how += (how.empty() ? "" : " ") + spec(word);
      how = "(" + how + ")";
      break;
    case CompletionKind::kFiles: how = paths; break;
    case CompletionKind::kFolders: how = "_files -/"; break;
    case CompletionKind::kNothing: break;
  }
  return fmt::format(":{}:{}", spec(name), how);
}

std::string function_name(const Command& command) {
  std::string name = "_" + command.full_name();
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
}

/// The arguments of _arguments for the options, a line each.
std::string option_specs(const Command& command, const std::string& paths) {
  std::string out;
  for (const Entry& entry : command.entries()) {
    if (entry.positional) continue;
    const std::vector<std::string> spellings = entry.spellings();
    const std::string others =
        entry.repeated ? "*" : fmt::format("({})", fmt::join(spellings, " "));
    for (const std::string& name : spellings) {
      const char* joined = entry.is_flag() ? "" : name.starts_with("--") ? "=" : "+";
      const std::string value = entry.is_flag() ? "" : value_spec(entry.value, entry, paths);
      out += fmt::format(" \\\n    {}", shell_quoted(fmt::format("{}{}{}[{}]{}", others, name,
                                                                 joined, spec(entry.help), value)));
    }
  }
  return out;
}

void append_leaf(std::string& out, const Command& command, const std::string& paths) {
  out += fmt::format("{}() {{\n  _arguments -s -S{}", function_name(command),
                     option_specs(command, paths));
  for (const Entry& entry : command.entries()) {
    if (!entry.positional) continue;
    out += fmt::format(" \\\n    {}", shell_quoted((entry.repeated   ? "*"
                                                    : entry.required ? ""
                                                                     : ":") +
                                                   value_spec(entry.names, entry, paths)));
  }
  out += "\n}\n\n";
}

void append_command(std::string& out, const Command& command, const std::string& paths) {
  if (command.subcommands().empty()) {
    append_leaf(out, command, paths);
    return;
  }
  std::string described;
  std::string cases;
  for (const auto& child : command.subcommands()) {
    append_command(out, *child, paths);
    described +=
        fmt::format("        {}\n", shell_quoted(spec(child->name()) + ":" + child->summary()));
    cases += fmt::format("        {}) {} && ret=0 ;;\n", child->name(), function_name(*child));
  }
  out += fmt::format(
      "{}() {{\n"
      "  local curcontext=\"$curcontext\" state line ret=1\n"
      "  local -a commands\n"
      "  typeset -A opt_args\n"
      "  _arguments -s -S -C{} \\\n"
      "    '1:command:->command' '*::argument:->argument' && ret=0\n"
      "  case $state in\n"
      "    command)\n"
      "      commands=(\n"
      "{}"
      "      )\n"
      "      _describe -t commands command commands && ret=0\n"
      "{}"
      "      ;;\n"
      "    argument)\n"
      "      case $line[1] in\n"
      "{}"
      "      esac\n"
      "      ;;\n"
      "  esac\n"
      "  return ret\n"
      "}}\n\n",
      function_name(command), option_specs(command, paths), described,
      command.acts() ? fmt::format("      {} && ret=0\n", paths) : "", cases);
}

}  // namespace

std::string zsh_completion(const Command& tool) {
  std::string out = fmt::format(
      "#compdef {0}\n"
      "# Completes {0} (masque {1}) in zsh: a file of $fpath with the name _{0}, or, after "
      "compinit,\n"
      "# source <({0} --completion zsh)\n\n",
      tool.name(), kVersion);
  const std::string paths = "__" + tool.name() + "_paths";
  out += fmt::format(
      "# Names of models of the local Hugging Face cache after hf:, else files.\n"
      "{0}() {{\n"
      "  [[ $PREFIX == hf:* ]] || {{ _files; return }}\n"
      "  local -a names=(${{(f)\"$({1} --completion {2} 2>/dev/null)\"}})\n"
      "  compadd -a names\n"
      "}}\n\n",
      paths, tool.name(), kCompletionHub);
  append_command(out, tool, paths);
  out += fmt::format(
      "if [ \"$funcstack[1]\" = {0} ]; then\n  {0} \"$@\"\nelse\n  compdef {0} {1}\nfi\n",
      function_name(tool), tool.name());
  return out;
}

}  // namespace masque::cli
