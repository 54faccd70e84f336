// Where the files of a TensorFlow checkpoint are, given what users call it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace masque::store {

/// The name of the data file number `shard`, from 0, of the `shards` of the bundle `prefix`:
/// "model.ckpt", 0, 2 → "model.ckpt.data-00000-of-00002".
std::string bundle_shard_name(std::string_view prefix, std::uint64_t shard, std::uint64_t shards);

/// The names of all `shards` data files of the index `index_name`, "PREFIX.index", in order.
std::vector<std::string> bundle_shard_names(std::string_view index_name, std::uint64_t shards);

/// The prefix of the data file `shard_name`: "model.ckpt.data-00000-of-00002" → "model.ckpt";
/// nothing if this is no name of a data file.
std::optional<std::string> bundle_prefix_of(std::string_view shard_name);

/// Whether a file called `name` belongs to TensorFlow checkpoints of its folder, by its name alone:
/// an index, a data file, a graph, or the list of them.
bool is_bundle_file(std::string_view name);

/// Of the files `names` of `folder` those of other bundles than the one with this `index`: indexes,
/// data files, graphs; with any of them the list, too, which tells which bundle is the newest.
/// Throws InputError if a file cannot be read.
std::vector<std::string> files_of_other_bundles(const std::string& folder,
                                                const std::vector<std::string>& names,
                                                const std::string& index);

/// The index that `path` stands for: PREFIX.index itself, or of PREFIX if there is no file of this
/// name. Nothing for other paths. Throws InputError that names the prefix if the path is a data
/// file or the graph of a checkpoint.
std::optional<std::string> bundle_index_of(const std::string& path);

/// The name of the index in `folder` with the files `names`: the only one, or the one that the file
/// `checkpoint` names. Nothing if there is none. A note in `notes` says how many others are not
/// used. Throws InputError if it is not clear which, and for a SavedModel, whose checkpoint is in a
/// folder of its own.
std::optional<std::string> find_bundle_index(const std::string& folder,
                                             const std::vector<std::string>& names,
                                             std::vector<std::string>& notes);

}  // namespace masque::store
