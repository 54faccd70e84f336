#include "commands/corpus_notes.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/comma_list.hpp"
#include "cli/input_lines.hpp"

namespace masque::commands {

void note_corpus(const train::Corpus& corpus, cli::Session& session, bool offers_blocks) {
  cli::note_repaired(corpus.repaired(), corpus.source(), session);
  cli::note_surrogates(corpus.surrogates(), corpus.source(), session);
  const train::CutText cut = corpus.cut_text();
  if (cut.left_out == 0) return;
  const std::string_view what = corpus.pairs() ? "pair" : "line";
  session.note(fmt::format(
      "{}: {} cut to {} tokens, {} of text ({:.1f} %) left out; a larger {} reads "
      "more{}",
      corpus.source(), counted(cut.sequences, what), corpus.longest(),
      counted(cut.left_out, "token"),
      100 * static_cast<double>(cut.left_out) / static_cast<double>(cut.tokens), field("length"),
      offers_blocks && !corpus.pairs() ? fmt::format(", {} blocks reads all", field("format"))
                                       : ""));
}

}  // namespace masque::commands
