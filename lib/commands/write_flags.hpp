// How a command writes a checkpoint: what it may replace, and what it copies.
// In a header alone: tools without models use it.
#pragma once

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "cli/shared_options.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::commands {

/// What a user says about writing a checkpoint.
struct WriteFlags {
  bool force = false;      ///< replaces an existing output
  bool no_follow = false;  ///< refuses links to files outside of the folder
};

/// Declares --force and --no-follow of a `command` that writes a checkpoint and copies the other
/// files of its folder; `flags` holds their targets.
inline void add_write_flags(cli::Command& command, WriteFlags& flags) {
  cli::add_force(command, flags.force);
  command.flag("--no-follow", flags.no_follow,
               "refuse a folder with links to files outside of it instead of copying these files");
}

/// For a writer: the threads of `common`, a progress line on `session`, and what `flags` say.
inline store::WriteOptions write_options(const WriteFlags& flags, const cli::CommonOptions& common,
                                         cli::Session& session) {
  store::WriteOptions options;
  options.threads = common.threads;
  options.progress = session.progress("writing");
  options.existing = flags.force ? Existing::kReplace : Existing::kRefuse;
  options.follow_links = !flags.no_follow;
  return options;
}

}  // namespace masque::commands
