// tok check: whether token folders are whole.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "cli/option_values.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "input.hpp"
#include "records/token_folder.hpp"
#include "text/tokenizer.hpp"

namespace masque::tok {

namespace {

struct Options {
  std::vector<std::string> folders;
  std::optional<std::string> tokenizer;
  text::TokenizerOptions open;
  cli::CommonOptions common;
};

/// Examines one folder and prints its row: kDone, kFound if it is damaged, kInput if it cannot be
/// read. `expected`: the digest of its tokenizer, or nothing.
cli::ExitCode examine(const std::string& folder, const Options& o, const std::string& expected,
                      cli::Session& session, cli::Table& table) {
  records::TokenFolderInfo info;
  std::optional<std::string> damage;
  const std::optional<std::string> unreadable = input_error_message([&] {
    const auto open = records::TokenFolder::open(folder);
    info = open->info();
    damage = open->find_damage();
    if (!damage && o.tokenizer && info.tokenizer != expected)
      damage = fmt::format("made with another tokenizer than {}", *o.tokenizer);
  });
  // The others are still examined.
  const std::string result = unreadable ? "unreadable" : damage ? "broken" : "ok";
  const std::string message = unreadable.value_or(damage.value_or(""));
  table.row({folder, result, info.sequences, info.tokens, cli::with_options(message)},
            result == "ok" ? cli::Tone::kGood : cli::Tone::kBad);
  if (unreadable) session.note(message);
  return unreadable ? cli::ExitCode::kInput : damage ? cli::ExitCode::kFound : cli::ExitCode::kDone;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  if (!o.tokenizer && o.open.flavor != text::Flavor::kAuto)
    throw UsageError("--flavor needs --tokenizer");
  std::string expected;
  if (o.tokenizer) expected = text::tokenizer_digest(open_tokenizer(*o.tokenizer, o.open, session));
  cli::Table table(session, o.common, {"folder", "result", "sequences", "tokens", "message"});
  cli::ExitCode worst = cli::ExitCode::kDone;
  for (const std::string& folder : o.folders)
    worst = std::max(worst, examine(folder, o, expected, session, table));
  table.finish();
  return worst;
}

}  // namespace

void declare_check(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "check",
      "reads token folders and compares them with their checksums; exit code 1 if one is "
      "damaged");
  c.example("tok check tokens", "exit code 0 if all ids are as they were written");
  c.example("tok check tokens --tokenizer gpt2/", "also whether this tokenizer made them");
  c.arguments("FOLDER", o->folders, "token folders, as tok encode --to writes them");
  c.option("--tokenizer", "TOKENIZER", o->tokenizer, "the tokenizer that they should be made with");
  add_flavor(c, o->open);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::tok
