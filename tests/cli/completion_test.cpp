// The texts; tests/consumer/check.sh runs those of the tools in bash.
#include "cli/completion.hpp"

#include <doctest/doctest.h>

#include "small_tool.hpp"
#include "support/message.hpp"

namespace masque::test {
namespace {

using cli::CompletionKind;

TEST_CASE("the name of a value says what can stand for it") {
  const auto fill = [](const char* value) {
    cli::Entry entry{};
    entry.names = "--option";
    entry.value = value;
    return cli::completion_kind_of(entry);
  };
  CHECK(fill("FILE") == CompletionKind::kFiles);
  CHECK(fill("FILE.png") == CompletionKind::kFiles);
  CHECK(fill("OUTPUT") == CompletionKind::kFiles);
  CHECK(fill("DIR") == CompletionKind::kFolders);
  CHECK(fill("FILE|DIR") == CompletionKind::kFiles);
  CHECK(fill("MODEL") == CompletionKind::kFiles);
  CHECK(fill("N") == CompletionKind::kNothing);
}

TEST_CASE("quoted") {
  CHECK(cli::shell_quoted("a b$c") == "'a b$c'");
  CHECK(cli::shell_quoted("it's") == "'it'\\''s'");
  CHECK(cli::shell_quoted("it's", "\\'") == "'it\\'s'");
}

TEST_CASE("bash: a branch per option with a value, and one per command") {
  const SmallTool small;
  const std::string script = cli::bash_completion(small.tool);
  CHECK(contains(script, "\n_small_tool() {\n"));
  CHECK(contains(script, "\n      'small-tool paint' | 'small-tool list') path+="));
  CHECK(contains(script, "\n    'small-tool --completion') words=('bash' 'zsh' 'fish' 'hf') ;;\n"));
  CHECK(
      contains(script, "\n    'small-tool paint -o' | 'small-tool paint --output') return 0 ;;\n"));
  CHECK(contains(script, "\n    'small-tool paint --folder') compopt +o default -o dirnames "));
  CHECK(contains(script, "\n    'small-tool paint -k' | 'small-tool paint --count') ;;\n"));
  CHECK(contains(script, "\n    'small-tool paint --shade') words=('light' 'dark') ;;\n"));
  CHECK_FALSE(contains(script, "'small-tool paint --loud')"));
  CHECK(contains(script, " '-l' '--loud' '-h' '--help')\n"));
  CHECK(contains(script, "\ncomplete -o default -F _small_tool 'small-tool'\n"));
}

TEST_CASE("zsh: a function per command, and its own characters escaped") {
  const SmallTool small;
  const std::string script = cli::zsh_completion(small.tool);
  CHECK(script.starts_with("#compdef small-tool\n"));
  CHECK(contains(script, "\n    '(-o --output)-o+[where to]:OUT_FILE:__small-tool_paths' \\\n"));
  CHECK(contains(script, "\n    '(--folder)--folder=[a folder]:DIR:_files -/' \\\n"));
  CHECK(contains(script, "\n    '(--shade)--shade=[which]:light|dark:(light dark)' \\\n"));
  CHECK(contains(script, "\n    '(-l --loud)--loud[don'\\''t whisper]' \\\n"));
  CHECK(contains(script, "\n    '*:NAME:__small-tool_paths'\n"));
  CHECK(contains(script, "\n        'paint:paints – in [two] shades: a, b'\n"));
  CHECK(contains(script, "\n        list) _small-tool_list && ret=0 ;;\n"));
}

TEST_CASE("fish: a line per option, under the condition of its command") {
  const SmallTool small;
  const std::string script = cli::fish_completion(small.tool);
  const std::string paint = "\ncomplete -c small-tool -n '__small_tool_in paint'";
  CHECK(contains(script, "\nfunction __small_tool_in\n"));
  CHECK(contains(script, "\ncomplete -c small-tool -n '__small_tool_at' -a list -d 'lists'\n"));
  CHECK(contains(script, paint + " -s o -l output -r -F -a '(__small_tool_hub)' -d 'where to'\n"));
  CHECK(contains(script, paint + " -s k -l count -x -d 'how many'\n"));
  CHECK(contains(script, paint + " -l shade -x -a 'light dark' -d 'which'\n"));
  CHECK(contains(script, paint + " -s l -l loud -d 'don\\'t whisper'\n"));
}

}  // namespace
}  // namespace masque::test
