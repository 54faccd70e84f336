// Options from a file: what counts, where mistakes are, and that what is printed can be read.
#include "cli/experiment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {
namespace {

/// A tool with one of every kind of entry, and what it was given.
struct Tool {
  std::string input, output;
  std::optional<double> rate;
  std::int64_t steps = 7, every = 0;
  std::vector<std::string> more;
  int shade = 0;
  bool loud = false, soft = false;
  cli::Command tool{"tool", "does"};
  TempFolder folder;
  std::string path = folder / "e.conf";

  Tool() {
    tool.argument("INPUT", input, "from");
    tool.option("-o,--output", "DIR", output, "to", cli::Need::kRequired);
    tool.option("--rate", "R", rate, cli::AllowedRange{0, 1}, "how often");
    tool.option("--steps", "N", steps, cli::AllowedRange{1, 99}, "how long");
    tool.option("--eval-every", "N", every, cli::AllowedRange{0, 99}, "how often");
    tool.option("--more", "WORD", more, "words");
    tool.choice("--shade", shade, {{"light", 0}, {"dark", 1}}, "which");
    tool.flag("--loud", loud, "not soft");
    tool.flag("--soft", soft, "not loud");
    tool.one_of({"--rate", "--steps"});
    tool.experiment(cli::ExperimentFile::kOption);
    tool.action([this](cli::Session&) {
      if (steps == 13) throw UsageError(field("steps") + ": found 13, expected more luck");
      if (steps == 14) throw UsageError(field("steps_and_more") + ": found 14");
      if (steps == 15) {
        throw UsageError(fmt::format("{} with {} and {}: found 15", field("rates"),
                                     field("eval_every"), field("steps")));
      }
      if (steps == 16)
        throw UsageError(fmt::format("{}: found 16, expected {}", field("more"), field("steps")));
      if (steps == 17) throw UsageError("--steps: found 17");
      return cli::ExitCode::kDone;
    });
  }

  /// Parses the file's text and the arguments; what is printed instead of a run.
  std::string parse(const std::string& file, std::vector<std::string> arguments = {}) {
    write_file(path, file);
    arguments.insert(arguments.end(), {"--experiment", path});
    std::string text;
    tool.parse(arguments, text);
    return text;
  }
};

/// What is wrong with a line, after a valid one; without the file's name.
std::string refusal(const std::string& line) {
  Tool tool;
  const std::string text =
      message_of<InputError>([&] { tool.parse("# one\noutput = o\n" + line + "\n", {"i"}); });
  return text.starts_with(tool.path) ? text.substr(tool.path.size()) : text;
}

TEST_CASE("what is requested: on the command line, or in a file with another value than it has") {
  Tool tool;
  tool.parse("steps = 7\nshade = light\nsoft = false\nloud = true\nmore = a\n",
             {"i", "-o", "x", "--shade", "light"});
  CHECK(tool.tool.is_set("steps"));
  CHECK_FALSE(tool.tool.is_requested("steps"));
  CHECK(tool.tool.is_requested("shade"));
  CHECK(tool.tool.is_requested("loud"));
  CHECK(tool.tool.is_requested("more"));
  CHECK_FALSE(tool.tool.is_requested("soft"));
  CHECK_FALSE(tool.tool.is_requested("rate"));
}

TEST_CASE("a file gives options and arguments, the command line replaces them") {
  Tool tool;
  const std::string file =
      "# a comment\r\n\n input=a b # more\n output =  x#y\nsteps\t= 9\nmore = one\nmore = two\n"
      "shade = dark\nloud = true\nsoft = false\nrate = 0.5\neval-every = 4";
  tool.parse(file);
  CHECK(tool.input == "a b");
  CHECK(tool.output == "x#y");
  CHECK(tool.steps == 9);
  CHECK(tool.rate == 0.5);
  CHECK(tool.more == std::vector<std::string>{"one", "two"});
  CHECK(tool.shade == 1);
  CHECK(tool.loud);
  CHECK_FALSE(tool.soft);

  Tool other;
  other.parse(file, {"c", "--steps", "3", "--more=three", "-o", "d", "--shade", "light", "--soft"});
  CHECK(other.input == "c");
  CHECK(other.output == "d");
  CHECK(other.steps == 3);
  CHECK(other.more == std::vector<std::string>{"three"});
  CHECK(other.shade == 0);
  CHECK(other.soft);
  CHECK(other.every == 4);
}

TEST_CASE("of options that exclude each other, one on the command line replaces all in the file") {
  const std::string file = "input = a\noutput = o\nrate = 0.5\n";
  Tool both;
  both.parse(file + "steps = 3\n");
  CHECK(both.rate == 0.5);
  CHECK(both.steps == 3);
  Tool other;
  const std::string text = other.parse(file, {"--steps", "5", "--print-experiment"});
  CHECK_FALSE(other.rate);
  CHECK(other.steps == 5);
  CHECK(contains(text, "\n# rate = R\nsteps = 5\n"));
  Tool same;
  same.parse(file, {"--rate", "0.75"});
  CHECK(same.rate == 0.75);
}

TEST_CASE("a byte-order mark in front is skipped") {
  Tool tool;
  tool.parse("\xEF\xBB\xBFinput = a\noutput = o\n");
  CHECK(tool.input == "a");
  CHECK(refusal("\xEF\xBB\xBFsteps = 3").starts_with(":3: no option '"));
}

TEST_CASE("brackets, sharps and equals signs in values stay") {
  Tool tool;
  tool.parse("input = [a]\noutput=#x=y#z \t# [b]\nmore = a=b\nmore = \"c#\"\nmore = e.*\n#[c]\n");
  CHECK(tool.input == "[a]");
  CHECK(tool.output == "#x=y#z");
  CHECK(tool.more == std::vector<std::string>{"a=b", "\"c#\"", "e.*"});
}

TEST_CASE("a value is one that reads back") {
  for (const char* value : {"a", "a b", "x#y", "a=b", "[a]", "= 3", "\"", "a\rb", "\xC3\xA9", "#"})
    CHECK(cli::is_setting_value(value) == (std::string(value) != "#"));
  for (const char* value : {"", " a", "a ", "a\t", "a\nb", "a # b", "# a", "a\r"})
    CHECK_FALSE(cli::is_setting_value(value));
}

TEST_CASE("mistakes are reported with their line") {
  CHECK(refusal("[section]") ==
        ":3: found the section '[section]', expected key = value: these files have no sections");
  CHECK(refusal(" [] # none").starts_with(":3: found the section '[]', "));
  CHECK(refusal("[a] = [b]").starts_with(":3: found the section '[a] = [b]', "));
  CHECK(refusal("[a = 3").starts_with(":3: no option '[a'"));
  CHECK(refusal("st#eps = 3") == ":3: found 'st#eps = 3', expected key = value");
  CHECK(refusal("st* = 3").starts_with(":3: no option 'st*'"));
  CHECK(refusal("a.b = 3").starts_with(":3: no option 'a.b'"));
  CHECK(refusal("=") == ":3: found '=', expected key = value");
  CHECK(refusal("steps") == ":3: found 'steps', expected key = value");
  CHECK(refusal("= 3") == ":3: found '= 3', expected key = value");
  CHECK(refusal("steps =  # 3") == ":3: steps: no value, expected one");
  CHECK(refusal("steps = x") == ":3: steps: found 'x', expected a whole number");
  CHECK(refusal("steps = 0") == ":3: steps: found 0, expected 1 to 99");
  CHECK(refusal("shade = drak") ==
        ":3: shade: found 'drak', expected one of light, dark; did you mean 'dark'?");
  CHECK(refusal("loud = yes") == ":3: loud: found 'yes', expected true or false");
  CHECK(refusal("step = 3") == ":3: no option 'step'; did you mean 'steps'?");
  CHECK(refusal("experiment = x").starts_with(":3: no option 'experiment'"));
  CHECK(refusal("--steps = 3") == ":3: no option '--steps'; did you mean 'steps'?");
  CHECK(refusal("output = p").starts_with(":3: output is already set at "));
  CHECK(refusal("output = p").ends_with("e.conf:2, expected once"));
}

TEST_CASE("a value of the file that the command line replaces is checked, too") {
  Tool tool;
  CHECK(contains(message_of([&] {
                   tool.parse("steps = x\n", {"i", "-o", "o", "--steps", "3"});
                 }),
                 ":1: steps: found 'x'"));
}

TEST_CASE("what only the command finds is reported with the line, too") {
  cli::Session session("tool", false);
  Tool tool;
  tool.parse("output = o\nsteps = 13\n", {"i"});
  CHECK(message_of([&] { tool.tool.run(session); }) ==
        tool.path + ":2: steps: found 13, expected more luck");
  Tool typed;
  typed.parse("output = o\nsteps = 12\n", {"i", "--steps", "13"});
  CHECK(message_of<UsageError>([&] { typed.tool.run(session); }) ==
        "steps: found 13, expected more luck");
  Tool other;
  other.parse("output = o\nsteps = 14\n", {"i"});
  CHECK(message_of<UsageError>([&] { other.tool.run(session); }) == "steps_and_more: found 14");
  // Of several options the first one that the file has.
  Tool several;
  several.parse("output = o\nsteps = 15\neval-every = 3\n", {"i"});
  CHECK(message_of([&] { several.tool.run(session); }) ==
        several.path + ":3: --rates with eval-every and steps: found 15");
  // A message that begins with a field and a colon is about no other one.
  Tool advice;
  advice.parse("output = o\nsteps = 16\n", {"i"});
  CHECK(message_of<UsageError>([&] { advice.tool.run(session); }) ==
        "more: found 16, expected steps");
  // Words that look like an option are words.
  Tool words;
  words.parse("output = o\nsteps = 17\n", {"i"});
  CHECK(message_of<UsageError>([&] { words.tool.run(session); }) == "--steps: found 17");
}

TEST_CASE("what is required may be in the file, and one file is enough") {
  Tool tool;
  CHECK(message_of<UsageError>([&] {
          tool.parse("steps = 3\n", {"i"});
        }).starts_with("no -o DIR (see "));
  CHECK(message_of<UsageError>([&] {
          tool.parse("steps = 3\n", {"i", "-o", "o", "--experiment", "x"});
        }) == "found 2 experiment files, expected one");
}

TEST_CASE("what is printed is read as the same options, and printed again") {
  Tool tool;
  const std::string text = tool.parse("input = a\nmore = x\nmore = y\nloud = true\nrate = 0.25\n",
                                      {"--print-experiment", "--shade", "light"});
  CHECK(contains(text,
                 "\ninput = a\n# output = DIR\nrate = 0.25\nsteps = 7\n# eval-every = N\n"
                 "more = x\nmore = y\nshade = light\nloud = true\nsoft = false\n"));
  Tool again;
  CHECK(again.parse(text, {"--print-experiment"}) == text);
  CHECK(again.rate == 0.25);
  CHECK(again.more == tool.more);
  Tool blank;
  CHECK(message_of<UsageError>([&] {
          blank.parse("", {" a", "--print-experiment"});
        }) == "input: ' a' cannot be a value in an experiment file");
}

TEST_CASE("what was given is told in the order of the declarations, the command line's first") {
  Tool tool;
  tool.parse("more = a\nsteps = 3\nsoft = false\nloud = true\ninput = x\neval-every = 4\n",
             {"--eval-every", "5", "-o", "out", "-o", "later"});
  std::vector<std::string> told;
  for (const cli::Setting& one : tool.tool.settings()) told.push_back(one.key + "=" + one.value);
  CHECK(told == std::vector<std::string>{"input=x", "output=later", "steps=3", "eval-every=5",
                                         "more=a", "loud=true"});
}

TEST_CASE("a wrong value of an option that a function takes has its line") {
  cli::Command tool("tool", "does");
  std::vector<std::string> taken;
  tool.option(
      "--vary", "LIST",
      [&](const std::string& text) {
        if (text == "bad") throw UsageError(field("vary") + ": found bad");
        taken.push_back(text);
      },
      "lists");
  tool.experiment(cli::ExperimentFile::kOption);
  tool.action([](cli::Session&) { return cli::ExitCode::kDone; });
  const TempFolder folder;
  write_file(folder / "e.conf", "vary = a\nvary = b=1,2\n");
  std::string text;
  tool.parse({"--experiment", folder / "e.conf"}, text);
  CHECK(taken == std::vector<std::string>{"a", "b=1,2"});
  write_file(folder / "e.conf", "vary = a\nvary = bad\n");
  CHECK(message_of([&] {
          tool.parse({"--experiment", folder / "e.conf"}, text);
        }) == folder / "e.conf" + ":2: vary: found bad");
}

}  // namespace
}  // namespace masque::test
