// Taking back a change in place that was not finished, from its undo journal.
#pragma once

#include <sys/stat.h>

#include <span>
#include <string>
#include <vector>

#include "base/undo_journal.hpp"

namespace masque {

/// Reads exactly out.size() bytes of the open file `fd` at byte `offset` into `out`: returns 0, or
/// the errno of what went wrong (EIO beyond its end). Never throws and is not interrupted.
int read_quietly(int fd, std::uint64_t offset, MutableBytes out) noexcept;

/// Gives the entry `name` of the open folder `folder` this `content` in one step, durable before it
/// gets its name (which is not yet). Mode and, as far as the process may, owner are those of the
/// file that was there. Returns 0 or an errno. Never throws.
int replace_quietly(int folder, const std::string& name, Bytes content) noexcept;

/// Puts every old byte of `journal` back into the files of the open folder `folder`, makes that
/// durable and removes the journal. `descriptors[i]` is open for writing for a patched
/// journal.plan.files[i]; others are not looked at. Returns 0 or an errno; the journal is then
/// still there, and it can be done again. Never throws: also for use while an error unwinds.
int roll_back(int folder, const UndoJournal& journal, std::span<const int> descriptors) noexcept;

/// Throws InputError unless the files in the open folder `folder` are those that `journal` was
/// written for, in whatever state the change left them. `descriptors` as for roll_back(); `path` is
/// what messages call the folder.
void check_identity(int folder, const std::string& path, const UndoJournal& journal,
                    std::span<const int> descriptors);

/// Returns the complete journals in the open folder `folder` that concern one of the files `names`,
/// sorted by name. `path` is what messages call the folder. Cost: one look at the folder's names,
/// unless there are journals, each of which is read whole. Throws InputError.
std::vector<UndoJournal> unfinished_changes(int folder, const std::string& path,
                                            std::span<const std::string> names);

/// Throws InputError if a change in place of one of the files `names` in `folder` is not finished:
/// it is being made, or what made it was killed.
void refuse_unfinished(const std::string& folder, std::span<const std::string> names);

}  // namespace masque
