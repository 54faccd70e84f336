// What the commands that change the vocabulary share: options, the run, the report.
#pragma once

#include <string>
#include <vector>

#include "cli/run_tool.hpp"
#include "commands/write_flags.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"

namespace masque::embed_fix {

/// Options of every such command.
struct VocabularyOptions {
  std::string in;
  std::optional<std::string> out;
  surgery::VocabularyRequest request;
  commands::WriteFlags write;
  cli::CommonOptions common;
};

/// Whether a command makes new rows, and so has --init and --seed.
enum class NewRowsOption { kNone, kInit };

/// CHECKPOINT, -o, --init, --seed, --tensor, -n, --verify, --force, -j, --json, -q, -v. To be
/// called before further arguments are declared.
void declare_vocabulary_options(cli::Command& command, VocabularyOptions& options,
                                NewRowsOption rows);

/// Carries a plan out and prints its report.
cli::ExitCode run_vocabulary(VocabularyOptions& options, cli::Session& session,
                             const surgery::VocabularyPlan& plan);

/// --as and the list of a command that names rows.
void declare_list(cli::Command& command, surgery::TokenList& list, const std::string& help);

/// A list from the command line: "@FILE" stands for the lines of a file ("@-": of standard input),
/// without empty ones and without a byte-order mark; a lone "@" for itself. Notes an entry that is
/// the name of a file as well. Throws InputError.
std::vector<std::string> read_list(const std::vector<std::string>& arguments,
                                   const VocabularyOptions& options, cli::Session& session);

}  // namespace masque::embed_fix
