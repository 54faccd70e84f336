// The undo journal of a change in place: what the changed bytes of some files were, in one file
// next to them. While it lies there, the change is not done and can be taken back. It gets its name
// when it is complete and on the disk, and only then the change begins: a journal with a wrong
// length or checksum was damaged later.
//
//   8 bytes  "masqundo"; u32 version, 1; u32 N, the length of the header (numbers little-endian)
//   N bytes  u32 files, each: u8 kind, u64 inode, u64 size, u32 length of the name, the name,
//            32 digits (XXH3-128 of the new content; zeros where the kind has none)
//            u64 ranges, each: u32 file, u64 offset, u64 size
//   …        the old bytes, range by range
//   48 bytes u64 length of the whole journal, XXH3-128 of all before it (32 digits), "undo-end"
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.hpp"

namespace masque {

/// How a file takes part in a change.
enum class UndoKind : std::uint8_t {
  kPatched,   ///< some of its bytes are written over
  kReplaced,  ///< it gets a whole new content under its name; its only range is the old one
  kCreated,   ///< it is new; undone by removing it
};

/// A file that a change touches.
struct UndoFile {
  std::string name;                    ///< in the journal's folder
  UndoKind kind = UndoKind::kPatched;  ///< decides which of the other fields are set
  std::uint64_t inode = 0;             ///< kPatched: together with `size`, which file it is
  std::uint64_t size = 0;              ///< bytes before the change; kCreated: 0
  std::string new_digest;              ///< kReplaced, kCreated: XXH3-128 of the new content
};

/// Bytes of a file that were saved.
struct UndoRange {
  std::uint32_t file = 0;    ///< index in UndoPlan::files
  std::uint64_t offset = 0;  ///< first byte in the file
  std::uint64_t size = 0;    ///< bytes
};

/// What a change touches. The first file gives the journal its name.
struct UndoPlan {
  std::vector<UndoFile> files;    ///< at least one
  std::vector<UndoRange> ranges;  ///< in the order in which the journal holds their old bytes
};

/// A journal that is complete on disk.
struct UndoJournal {
  std::string name;              ///< of the journal in its folder
  UndoPlan plan;                 ///< what its header says
  InputFile file;                ///< the journal, open
  std::uint64_t data_begin = 0;  ///< the byte where the old bytes begin in it
};

/// The journal's name for the file `name`: ".NAME.undo", or with a hash of it where that would
/// have more than 255 bytes.
std::string journal_name(const std::string& name);
/// Whether a file called `name` may be a journal, by its name alone.
bool is_journal_name(std::string_view name);

/// Fills `out` with the saved bytes of `range` from byte `offset` of it. May throw InputError.
using OldBytes =
    std::function<void(const UndoRange& range, std::uint64_t offset, MutableBytes out)>;

/// Writes the journal of `plan`, which must be new, with the bytes that `old` gives, under a
/// temporary name; makes it durable, gives it its name, and makes that durable. `folder` is an open
/// folder, `path` what messages call it. Throws InputError, Interrupted and what `old` throws;
/// there is then no journal, if the system lets it be removed. Memory: 1 MiB.
UndoJournal write_undo_journal(int folder, const std::string& path, UndoPlan plan,
                               const OldBytes& old);

/// Reads the journal `name` in the open folder `folder`, which messages call `path`; nothing if
/// there is no plain file of this name. Reads the whole file once. Throws InputError if it cannot
/// be read, is damaged or was written by another version.
std::optional<UndoJournal> read_undo_journal(int folder, const std::string& path,
                                             const std::string& name);

// Taking back a change in place that was not finished, from its undo journal.

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

/// Returns the journals in the open folder `folder` that concern one of the files `names`, sorted
/// by name. Any that is damaged may concern them. `path` is what messages call the folder. Cost:
/// one look at the folder's names, unless there are journals, each of which is read whole. Throws
/// InputError, also for one that is damaged.
std::vector<UndoJournal> unfinished_changes(int folder, const std::string& path,
                                            std::span<const std::string> names);

/// Throws InputError if a change in place of one of the files `names` in `folder` is not finished:
/// it is being made, or what made it was killed; or if a journal is damaged.
void refuse_unfinished(const std::string& folder, std::span<const std::string> names);

}  // namespace masque
