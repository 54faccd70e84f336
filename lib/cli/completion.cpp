#include "cli/completion.hpp"

#include "base/error.hpp"

namespace masque::cli {

namespace {

struct Script {
  const char* shell;
  std::string (*write)(const Command& tool);
};

constexpr Script kScripts[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace

std::vector<std::string> completion_shells() {
  std::vector<std::string> names;
  for (const Script& script : kScripts) names.emplace_back(script.shell);
  return names;
}

std::string completion(const Command& tool, std::size_t shell) {
  MASQUE_CHECK(shell < std::size(kScripts));
  return kScripts[shell].write(tool);
}

CompletionKind completion_kind_of(const Entry& entry) {
  if (!entry.words.empty()) return CompletionKind::kWords;
  if (entry.positional) return CompletionKind::kFiles;
  if (entry.value == "DIR") return CompletionKind::kFolders;
  for (const char* name : {"FILE", "DIR", "OUTPUT", "CHECKPOINT", "PATH"}) {
    if (entry.value.find(name) != std::string::npos) return CompletionKind::kFiles;
  }
  return CompletionKind::kNothing;
}

std::string shell_quoted(std::string_view text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace masque::cli
