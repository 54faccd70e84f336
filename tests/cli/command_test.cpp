#include "cli/command.hpp"

#include <doctest/doctest.h>

#include "cli/completion.hpp"
#include "cli/man_page.hpp"
#include "cli/session.hpp"
#include "small_tool.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {
namespace {

std::string refusal(const std::vector<std::string>& arguments) {
  SmallTool small;
  return message_of<UsageError>([&] { small.parse(arguments); });
}

TEST_CASE("options and arguments reach their targets") {
  SmallTool small;
  CHECK(small.parse({"paint", "in", "-o", "out", "--shade=dark", "-lk", "7"}) == "paint");
  CHECK(small.input == "in");
  CHECK(small.output == "out");
  CHECK(small.shade == Shade::kDark);
  CHECK(small.count == 7);
  CHECK(small.loud);
  CHECK_FALSE(small.folder);
}

TEST_CASE("after -- and = anything is a value") {
  SmallTool small;
  CHECK(small.parse({"list", "a", "x\x01", "--", "--help", "-x", "b="}) == "list");
  CHECK(small.names == std::vector<std::string>{"a", "x\x01", "--help", "-x", "b="});
  CHECK(small.parse({"paint", "--folder=", "in", "-o", "-l"}) == "paint");
  CHECK(small.folder == "");
  CHECK(small.input == "in");
  CHECK(small.output == "-l");
  CHECK_FALSE(small.loud);
}

TEST_CASE("an option without a value refuses one, whatever it is") {
  CHECK(refusal({"paint", "a", "-o", "b", "--loud=no"}) == "--loud: takes no value, found 'no'");
  CHECK(refusal({"paint", "a", "-o", "b", "--loud=true"}) ==
        "--loud: takes no value, found 'true'");
  CHECK(refusal({"paint", "a", "-o", "b", "--loud="}) == "--loud: takes no value, found ''");
  CHECK(refusal({"paint", "--help=yes"}) == "--help: takes no value, found 'yes'");
  CHECK(refusal({"--version=1"}) == "--version: takes no value, found '1'");
}

TEST_CASE("a command with sub-commands and an action of its own") {
  std::string input;
  std::string other;
  cli::Command tool("both", "does both");
  tool.argument("INPUT", input, "what");
  tool.action([](cli::Session&) { return cli::ExitCode::kDone; });
  cli::Command& child = tool.subcommand("paint", "paints");
  child.argument("OTHER", other, "what");
  child.action([](cli::Session&) { return cli::ExitCode::kDone; });
  std::string text;
  CHECK(tool.parse({"a.txt"}, text) == &tool);
  CHECK(input == "a.txt");
  CHECK(tool.parse({"paint", "b.txt"}, text) == &child);
  CHECK(other == "b.txt");
  CHECK(tool.parse({"./paint"}, text) == &tool);
  CHECK(input == "./paint");
  CHECK(message_of<UsageError>([&] { tool.parse({}, text); }) == "no INPUT (see 'both --help')");
  CHECK(contains(tool.help(), "Usage: both INPUT [OPTIONS]\n   or: both COMMAND …\n"));
  CHECK(contains(cli::man_page(tool), "\\fBboth\\fR \\fIINPUT\\fR [\\fIOPTIONS\\fR]\n.br\n"));
  CHECK(contains(cli::bash_completion(tool), "COMPREPLY=($(compgen -W 'paint' -- \"$cur\"))"));
}

TEST_CASE("mistakes are named, and a near word is offered") {
  CHECK(refusal({"piant"}) == "no command 'piant'; did you mean 'paint'?");
  CHECK(refusal({"paint", "a", "--lout"}) == "no option '--lout'; did you mean '--loud'?");
  CHECK(refusal({"paint", "a"}) ==
        "no -o OUT_FILE, as in: small-tool paint x (see 'small-tool paint --help')");
  CHECK(refusal({"paint", "a", "b", "-o", "c"}) == "unexpected argument 'b'");
  CHECK(refusal({"paint", "a", "-o", "c", "--shade", "drak"}) ==
        "shade: found 'drak', expected one of light, dark; did you mean 'dark'?");
  CHECK(refusal({"--completion", "tcsh"}) ==
        "--completion: found 'tcsh', expected one of bash, zsh, fish, hf");
  CHECK(refusal({"paint", "--man"}) == "no option '--man'");
}

TEST_CASE("options that are requested and not read are refused when the command runs") {
  bool read = false;
  std::string word;
  cli::Command command("small", "does nothing");
  command.option("--word", "WORD", word, "a word");
  command.read_only_if(
      {"word"}, [&] { return read; }, "without --luck");
  command.action([](cli::Session&) { return cli::ExitCode::kDone; });
  cli::Session session("small", false);
  std::string text;
  REQUIRE(command.parse({"--word", "x"}, text) == &command);
  CHECK(message_of<UsageError>([&] {
          command.run(session);
        }).find("has no effect without --luck; remove it") != std::string::npos);
  read = true;
  CHECK(command.run(session) == cli::ExitCode::kDone);
}

TEST_CASE("an output is no input") {
  const TempFolder folder;
  const std::string text = folder / "text";
  const std::string picture = folder / "heads.svg";
  const std::string vocab = folder / "vocab.txt";
  write_file(text, "a\n");
  write_file(picture, "a\n");
  write_file(vocab, "a\n");
  const std::string none = "(nothing thrown)";
  const auto problem = [&](const std::vector<std::string>& arguments) {
    std::string input;
    std::string output;
    std::string how;
    std::string totals;
    std::string unread;
    double seed = 0;
    cli::Command command("small", "does nothing");
    command.argument("INPUT", input, "what to read");
    command.option("-o,--output", "FILE", output, "what to write");
    command.option("--how", "HOW", how, "kind:FILE");
    command.option("--seed", "N", seed, {0, 9}, "a number");
    command.option("--totals", "FILE", totals, "what else to write");
    command.writes({"output"}, {".pos"});
    command.writes({"totals"});
    command.action([](cli::Session&) { return cli::ExitCode::kDone; });
    return message_of<UsageError>([&] { command.parse(arguments, unread); });
  };
  CHECK(problem({text, "-o", folder.path() + "/./text"}) ==
        "-o and INPUT name the same file, expected two");
  CHECK(problem({folder.path(), "-o", vocab}) == "-o names a file of INPUT, expected another one");
  CHECK(problem({folder.path(), "-o", text}) == none);
  CHECK(problem({"x", "--how", "join:" + text, "-o", text}) ==
        "-o and --how name the same file, expected two");
  CHECK(problem({"explicit(" + text + ", 3) & causal", "-o", text}) ==
        "-o and INPUT name the same file, expected two");
  CHECK(problem({"x", "-o", folder / "new", "--totals", folder.path() + "/./new"}) ==
        "-o and --totals name the same file, expected two");
  write_file(folder / "out.pos", "a\n");
  CHECK(problem({folder / "out.pos", "-o", folder / "out"}) ==
        "-o and INPUT name the same file, expected two");
  CHECK(problem({"x", "--seed", "1", "-o", "1"}) == none);
  CHECK(problem({folder.path(), "-o", picture}) == none);
  CHECK(problem({folder.path(), "-o", folder / "new"}) == none);
  CHECK(problem({"1", "-o", text}) == none);
}

TEST_CASE("what a tool tells about itself") {
  SmallTool small;
  CHECK(small.parse({"--help"}) == small.tool.help());
  CHECK(small.parse({"--man"}) == cli::man_page(small.tool));
  CHECK(small.parse({"--completion", "fish"}) == cli::fish_completion(small.tool));
  CHECK(contains(small.parse({"--version"}), "small-tool (masque) "));
  CHECK(small.parse({"--man", "--help"}) == small.tool.help());
}

TEST_CASE("--help: examples, usage, options with their defaults") {
  SmallTool small;
  const std::string help = small.parse({"paint", "-h"});
  CHECK(help.starts_with("Examples:\n  small-tool paint x\n      does x\n"));
  CHECK(contains(help, "\nUsage: small-tool paint INPUT -o OUT_FILE [OPTIONS]\n"));
  CHECK(contains(help, "\n  -k, --count N             how many [3]\n"));
  CHECK(contains(help, "\n  --shade light|dark        which [light]\n"));
  CHECK_FALSE(contains(help, "--man"));
  CHECK(contains(small.tool.help(), "\n  --completion bash|zsh|fish|hf\n"));
}

}  // namespace
}  // namespace masque::test
