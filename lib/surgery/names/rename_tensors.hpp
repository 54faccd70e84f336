// Tensors under new names: the work of `ckpt rename`, and a part of that of `ckpt convert`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint_writer.hpp"
#include "surgery/names/name_rules.hpp"

namespace masque::surgery {

/// The changes of the table `text`, one on each line: an old name, a tab, a new name; empty lines
/// do not count. `path` is for messages. Throws InputError for other lines and for a name that
/// comes twice on the left.
store::NameMap parse_name_map(std::string_view text, const std::string& path);

/// Throws InputError if an old name in `names` is no tensor's of `checkpoint` (naming the nearest),
/// if a new name is empty, or if two tensors would have the same one.
void check_new_names(const store::Checkpoint& checkpoint, const store::NameMap& names);

/// Gives the tensors of `weights` their new `names`, aliases too; sources and shapes stay. Returns
/// how many changed.
std::uint64_t apply_names(store::OutputWeights& weights, const store::NameMap& names);

/// Writes `checkpoint` with new `names` to `out`, as `options` say: in its format, files and
/// shards; from a folder every other file is copied. Files in the reference writer's order stay in
/// it. Throws UsageError (a folder into a file name, another format's file name) and InputError;
/// `out` is then as it was. Returns notes for users, each one line.
std::vector<std::string> rename_tensors(const store::Checkpoint& checkpoint,
                                        const store::NameMap& names, const std::string& out,
                                        store::WriteOptions options);

}  // namespace masque::surgery
