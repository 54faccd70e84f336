// What was changed and left out when a corpus was read.
#pragma once

#include "cli/session.hpp"
#include "train/data/corpus.hpp"

namespace masque::commands {

/// Notes on `session` what became U+FFFD in the text of `corpus`, and how many of its lines or
/// pairs were cut at the maximum length: how many tokens that left out, and which options read
/// them; with `offers_blocks` there is --format blocks.
void note_corpus(const train::Corpus& corpus, cli::Session& session, bool offers_blocks = false);

}  // namespace masque::commands
