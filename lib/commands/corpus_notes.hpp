// What was changed and left out when a corpus was read.
#pragma once

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "train/data/corpus.hpp"
#include "train/run/run.hpp"

namespace masque::commands {

/// Declares --policy of `command` for lines that are longer than the sequences of a corpus: cut,
/// skipped or refused. `policy` is its target, and holds the default.
void add_long_lines(cli::Command& command, evaluate::LengthPolicy::Kind& policy);

/// Adds `policy` to the settings of `run`, which --resume compares, unless lines are cut.
void add_long_lines_setting(evaluate::LengthPolicy::Kind policy, train::RunOptions& run);

/// Notes on `session` what became U+FFFD in the text of `corpus`, and how many of its lines or
/// pairs were cut at the maximum length, or skipped: how many tokens that left out, and which
/// options read them; with `offers_blocks` there is --format blocks.
void note_corpus(const train::Corpus& corpus, cli::Session& session, bool offers_blocks = false);

}  // namespace masque::commands
