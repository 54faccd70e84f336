// One function for the whole tool. It finds the sub-command in the words before the cursor, which
// must come first, and offers what can follow; where that is a file it offers nothing, and
// "complete -o default" lets bash do it.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.hpp"
#include "cli/completion.hpp"

namespace masque::cli {

namespace {

/// The branches of the script's two cases.
struct Branches {
  std::vector<std::string> paths;  ///< of sub-commands: 'ckpt ls'
  std::string values;              ///< by path and option: what the option's value can be
  std::string commands;            ///< by path: options and sub-commands
};

std::string quoted_words(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + shell_quoted(word);
  return fmt::format("({})", all);
}

/// What the script does for an option's value; without any, nothing is offered.
std::string value_action(const Entry& entry) {
  switch (completion_kind_of(entry)) {
    case CompletionKind::kWords: return fmt::format("words={} ", quoted_words(entry.words));
    case CompletionKind::kFiles: return "return 0 ";
    case CompletionKind::kFolders: return "compopt +o default -o dirnames 2>/dev/null; return 0 ";
    case CompletionKind::kNothing: break;
  }
  return "";
}

/// hf:OWNER/NAME, three words to bash, which wants what follows the colon alone.
std::string hub_names_part(const Command& tool) {
  return fmt::format(
      "  local typed=$cur skipped=\n"
      "  if [[ $cur == : && $prev == hf ]]; then\n"
      "    typed=hf: skipped=hf:\n"
      "  elif [[ $prev == : && ${{COMP_WORDS[COMP_CWORD - 2]}} == hf ]]; then\n"
      "    typed=hf:$cur skipped=hf:\n"
      "  fi\n"
      "  if [[ $typed == hf:* ]]; then\n"
      "    while IFS= read -r word; do\n"
      "      [[ $word == \"$typed\"* ]] && COMPREPLY+=(\"${{word#\"$skipped\"}}\")\n"
      "    done < <({} --completion {} 2>/dev/null)\n"
      "    compopt +o default 2>/dev/null\n"
      "    return 0\n"
      "  fi\n",
      shell_quoted(tool.name()), kCompletionHub);
}

void collect(const Command& command, Branches& branches) {
  const std::string path = command.full_name();
  std::vector<std::string> options;
  for (const Entry& entry : command.entries()) {
    if (entry.positional) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : entry.spellings()) {
      options.push_back(name);
      patterns.push_back(shell_quoted(fmt::format("{} {}", path, name)));
    }
    if (entry.is_flag()) continue;
    branches.values +=
        fmt::format("    {}) {};;\n", fmt::join(patterns, " | "), value_action(entry));
  }
  std::vector<std::string> children;
  for (const auto& child : command.subcommands()) {
    children.push_back(child->name());
    branches.paths.push_back(shell_quoted(child->full_name()));
  }
  std::string words = "[[ $cur != -* ]] && return 0";
  if (!children.empty())
    words = fmt::format("((at == COMP_CWORD)) && words={}", quoted_words(children));
  if (!children.empty() && command.acts()) {  // files, and its sub-commands after a letter
    words = fmt::format(
        "if [[ $cur != -* ]]; then\n"
        "            ((at == COMP_CWORD)) && [[ -n $cur ]] && COMPREPLY=($(compgen -W {} -- "
        "\"$cur\"))\n"
        "            return 0\n"
        "          fi",
        shell_quoted(fmt::format("{}", fmt::join(children, " "))));
  }
  branches.commands +=
      fmt::format("        {})\n          options={}\n          {}\n          ;;\n",
                  shell_quoted(path), quoted_words(options), words);
  for (const auto& child : command.subcommands()) collect(*child, branches);
}

}  // namespace

std::string bash_completion(const Command& tool) {
  Branches branches;
  collect(tool, branches);
  std::string function = "_" + tool.name();
  std::replace(function.begin(), function.end(), '-', '_');
  std::string out = fmt::format(
      "# Completes {0} (masque {1}) in bash: eval \"$({0} --completion bash)\"\n"
      "{2}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  local path={3} at=1 word words=() options=()\n"
      "  COMPREPLY=()\n",
      tool.name(), kVersion, function, shell_quoted(tool.name()));
  out +=  // --name=word is three words to bash
      "  if [[ $cur == = ]]; then\n"
      "    cur=\n"
      "  elif [[ $prev == = ]]; then\n"
      "    prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n";
  if (!branches.paths.empty()) {
    out += fmt::format(
        "  while ((at < COMP_CWORD)); do\n"
        "    case \"$path ${{COMP_WORDS[at]}}\" in\n"
        "      {}) path+=\" ${{COMP_WORDS[at]}}\" ;;\n"
        "      *) break ;;\n"
        "    esac\n"
        "    at=$((at + 1))\n"
        "  done\n",
        fmt::join(branches.paths, " | "));
  }
  out += fmt::format(
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD - 1}}\"; do\n"
      "    [[ $word == -- ]] && return 0\n"
      "  done\n"
      "{}"
      "  case \"$path $prev\" in\n"
      "{}"
      "    *)\n"
      "      case \"$path\" in\n"
      "{}"
      "      esac\n"
      "      [[ $cur == -* ]] && words=(\"${{options[@]}}\")\n"
      "      ;;\n"
      "  esac\n"
      "  compopt +o default 2>/dev/null\n"
      "  for word in \"${{words[@]}}\"; do\n"
      "    [[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$word\")\n"
      "  done\n"
      "  return 0\n"
      "}}\n"
      "complete -o default -F {} {}\n",
      hub_names_part(tool), branches.values, branches.commands, function,
      shell_quoted(tool.name()));
  return out;
}

}  // namespace masque::cli
