#include "cli/completion.hpp"

#include "base/error.hpp"
#include "cli/hub_cache.hpp"

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

std::vector<std::string> completion_words() {
  std::vector<std::string> words = completion_shells();
  words.emplace_back(kCompletionHub);
  return words;
}

std::string completion(const Command& tool, std::size_t word) {
  MASQUE_CHECK(word <= std::size(kScripts));
  if (word < std::size(kScripts)) return kScripts[word].write(tool);
  std::string names;
  for (const std::string& name : hub_names(hub_cache_folder())) names += name + "\n";
  return names;
}

CompletionKind completion_kind_of(const Entry& entry) {
  if (!entry.words.empty()) return CompletionKind::kWords;
  if (entry.positional) return CompletionKind::kFiles;
  if (entry.value == "DIR") return CompletionKind::kFolders;
  for (const char* name : {"FILE", "DIR", "OUTPUT", "CHECKPOINT", "MODEL", "PATH"}) {
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
