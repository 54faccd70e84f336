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

Fill fill_of(const Entry& entry) {
  if (!entry.words.empty()) return Fill::kWords;
  if (entry.positional) return Fill::kFiles;
  if (entry.value == "DIR") return Fill::kFolders;
  for (const char* name : {"FILE", "DIR", "OUTPUT", "CHECKPOINT", "PATH"}) {
    if (entry.value.find(name) != std::string::npos) return Fill::kFiles;
  }
  return Fill::kNothing;
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
