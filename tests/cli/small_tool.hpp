// A made-up tool with one of everything, for the texts about a command line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace masque::test {

enum class Shade { kLight, kDark };

/// Where the tool's values go.
struct SmallTool {
  std::string input;
  std::vector<std::string> names;
  std::string output;
  std::optional<std::string> folder;
  int count = 3;
  Shade shade = Shade::kLight;
  bool loud = false;
  cli::Command tool{"small-tool", "makes .things and it's \\ done"};

  SmallTool() {
    tool.example("small-tool paint a.txt -o 'b c'", ".begins with a dot");
    cli::Command& paint = tool.subcommand("paint", "paints – in [two] shades: a, b");
    paint.example("small-tool paint x", "does x");
    paint.argument("INPUT", input, "what to paint");
    paint.option("-o,--output", "OUT_FILE", output, "where to", cli::Need::kRequired);
    paint.option("--folder", "DIR", folder, "a folder");
    paint.option("-k,--count", "N", count, cli::AllowedRange{0, 9}, "how many");
    paint.choice("--shade", shade, {{"light", Shade::kLight}, {"dark", Shade::kDark}}, "which");
    paint.flag("-l,--loud", loud, "don't whisper");
    paint.action([](cli::Session&) { return cli::ExitCode::kDone; });
    cli::Command& list = tool.subcommand("list", "lists");
    list.arguments("NAME", names, "what to list");
    list.action([](cli::Session&) { return cli::ExitCode::kDone; });
  }

  /// Parses; the name of the command to run, or the text that was requested.
  std::string parse(const std::vector<std::string>& arguments) {
    std::string text;
    const cli::Command* command = tool.parse(arguments, text);
    return command == nullptr ? text : command->name();
  }
};

}  // namespace masque::test
