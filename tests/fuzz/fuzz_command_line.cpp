// Words of a command line with NULs between, the first of them the text of an experiment file: all
// kinds of options and arguments. What is accepted prints to an experiment file that is accepted
// and says the same.
#include "cli/command.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/memory_file.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

enum class Shade { kLight, kDark };

/// A tool with one of everything.
struct Tool {
  std::string text = "a", input;
  std::optional<std::string> folder;
  std::vector<std::string> names, several;
  double share = 0.5;
  std::optional<double> rate;
  int count = 3;
  std::int64_t large = 1;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> limit;
  Shade shade = Shade::kLight;
  bool loud = false;
  cli::Command tool{"fuzz", "has one of everything"};

  Tool() {
    cli::Command& run = tool.subcommand("run", "runs");
    run.argument("INPUT", input, "what is read");
    run.option("-t,--text", "TEXT", text, "any text");
    run.option("--folder", "DIR", folder, "a folder");
    run.option("--share", "P", share, {0, 1}, "a share");
    run.option("--rate", "R", rate, {0, 10}, "a rate");
    run.option("-k,--count", "N", count, {0, 9}, "how many");
    run.option("--large", "N", large, {-1e15, 1e15}, "a large number");
    run.option("--seed", "N", seed, "of random numbers");
    run.option("--limit", "N", limit, "at most so many");
    run.option("--several", "NAME", several, "may be repeated");
    run.choice("--shade", shade, {{"light", Shade::kLight}, {"dark", Shade::kDark}}, "which");
    run.flag("-l,--loud", loud, "loudly");
    run.one_of({"--rate", "--share"});
    run.experiment(cli::ExperimentFile::kOption);
    run.action([](cli::Session&) { return cli::ExitCode::kDone; });
    cli::Command& list = tool.subcommand("list", "lists");
    list.arguments("NAME", names, "what is listed", cli::Need::kOptional);
    list.action([](cli::Session&) { return cli::ExitCode::kDone; });
  }

  /// The text that the words ask for; nothing if they ask for the work.
  std::optional<std::string> parse(const std::vector<std::string>& words) {
    std::string printed;
    return tool.parse(words, printed) == nullptr ? std::optional(printed) : std::nullopt;
  }
};

void reads_back(const std::string& printed) {
  const test::MemoryFile file(printed);
  const auto again = Tool().parse({"run", "--experiment", file.path(), "--print-experiment"});
  test::require(again == printed, "another experiment file: " + escape(again.value_or("none")));
}

void check(std::string_view input) {
  test::InputParts parts(input);
  const test::MemoryFile file(parts.next());
  std::vector<std::string> words;
  while (!parts.rest().empty() && words.size() < 12) words.emplace_back(parts.next());
  test::accepts([&] { Tool().parse(words); });
  words.insert(words.begin(), "run");
  words.insert(words.end(), {"--experiment", file.path(), "--print-experiment"});
  std::optional<std::string> printed;
  if (!test::accepts([&] { printed = Tool().parse(words); })) return;
  if (printed && printed->starts_with("# fuzz run")) reads_back(*printed);
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_parts)
