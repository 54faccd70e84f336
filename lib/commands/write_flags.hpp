// How a command writes a checkpoint: what it may replace, and what it copies.
// In a header alone: tools without models use it.
#pragma once

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/command.hpp"
#include "cli/session.hpp"
#include "cli/shared_options.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::commands {

/// What a user says about writing a checkpoint.
struct WriteFlags {
  bool force = false;      ///< replaces an existing output
  bool no_follow = false;  ///< refuses links to files outside of the folder
  bool follow = false;     ///< copies these files without a note, too
};

/// Declares --force, --follow and --no-follow of a `command` that writes a checkpoint and copies
/// the other files of its folder; `flags` holds their targets.
inline void add_write_flags(cli::Command& command, WriteFlags& flags) {
  cli::add_force(command, flags.force);
  command.flag("--no-follow", flags.no_follow,
               "refuse a folder with links to files outside of it instead of copying these files");
  command.flag("--follow", flags.follow,
               "with -q: copy files outside of the folder that links in it name, which is refused "
               "otherwise because no note says it");
}

/// For a writer: the threads of `common`, a progress line on `session`, and what `flags` say. Where
/// notes are silent, links to outside of the folder are followed only if the flags say so. Throws
/// UsageError for flags that contradict each other.
inline store::WriteOptions write_options(const WriteFlags& flags, const cli::CommonOptions& common,
                                         cli::Session& session) {
  store::WriteOptions options;
  options.threads = common.threads;
  options.progress = session.progress("writing");
  options.existing = flags.force ? Existing::kReplace : Existing::kRefuse;
  if (flags.follow && flags.no_follow)
    throw UsageError(fmt::format("{} and {} contradict each other: use one of them",
                                 field("follow"), field("no_follow")));
  options.follow_links = flags.follow || !(flags.no_follow || common.quiet);
  return options;
}

}  // namespace masque::commands
