#include "commands/corpus_notes.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/comma_list.hpp"
#include "cli/input_lines.hpp"

namespace masque::commands {

namespace {

using Kind = evaluate::LengthPolicy::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 3> kLongLines{
    {{"truncate", Kind::kFirst}, {"skip", Kind::kSkip}, {"error", Kind::kError}}};

}  // namespace

void add_long_lines(cli::Command& command, Kind& policy) {
  command.choice("--policy", policy, NameTable<Kind>(kLongLines),
                 "what to do with a line or pair of more than --length tokens: cut it, leave it "
                 "out, or end with an error");
}

void add_long_lines_setting(Kind policy, train::RunOptions& run) {
  if (policy != Kind::kFirst)
    run.settings.emplace_back("policy", evaluate::policy_text({policy, 0}));
}

void note_corpus(const train::Corpus& corpus, cli::Session& session, bool offers_blocks) {
  cli::note_repaired(corpus.repaired(), corpus.source(), session);
  cli::note_surrogates(corpus.surrogates(), corpus.source(), session);
  const train::CutText cut = corpus.cut_text();
  if (cut.left_out == 0) return;
  const std::string lines = counted(cut.sequences, corpus.pairs() ? "pair" : "line");
  session.note(fmt::format(
      "{}: {}, {} of text ({:.1f} %) left out; a larger {} reads more{}", corpus.source(),
      cut.skipped > 0 ? fmt::format("{} skipped as too long", lines)
                      : fmt::format("{} cut to {} tokens", lines, corpus.longest_read()),
      counted(cut.left_out, "token"),
      100 * static_cast<double>(cut.left_out) / static_cast<double>(cut.tokens), field("length"),
      offers_blocks && !corpus.pairs() ? fmt::format(", {} blocks reads all", field("format"))
                                       : ""));
}

}  // namespace masque::commands
