// Markers: what our tools leave in a checkpoint about what they did to it ("masque.mlm_correct").
// They are metadata where the format has some. Otherwise, or if a file was changed in place, they
// are members of the folder's config.json; without one, or next to a lone file, of
// FILE.masque.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"

namespace masque::store {

/// What keys of markers begin with.
inline constexpr std::string_view kMarkerPrefix = "masque.";

/// The config of `checkpoint`: that of its folder, also of a lone file that has the name of a
/// folder's weights; nothing if there is none. Throws as ModelConfig::find.
std::optional<ModelConfig> own_config(const Checkpoint& checkpoint);

/// Where the file `path` has its markers if neither its metadata nor a config.json does:
/// FILE.masque.json.
std::string side_path(const std::string& path);

/// What `file`, a file of weights of `checkpoint`, is called: of a data file of a bundle, its
/// index. A reference into one of the two.
const std::string& weights_name(const Checkpoint& checkpoint, const WeightsFile& file);

/// The value of the marker `key` of the file of `checkpoint` that holds the tensor `neighbour`: in
/// its metadata, in FILE.masque.json, or in the config.json of a folder; nothing if there is none.
/// A lone file that has the name of a folder's weights is looked up in the config.json next to it,
/// too. Throws InputError if FILE.masque.json or the config is no JSON object, or there is no such
/// tensor.
std::optional<std::string> find_marker(const Checkpoint& checkpoint, const std::string& neighbour,
                                       std::string_view key);

/// All markers of `checkpoint`, each key once (the first file's), sorted by key. Throws as
/// find_marker does.
Metadata markers_of(const Checkpoint& checkpoint);

/// The text `config` of a config.json with these `markers` and no others. Every other byte stays.
/// Throws InputError if it is no JSON.
std::string with_markers(const std::string& config, const Metadata& markers);

/// The text of FILE.masque.json with these `markers`.
std::string side_file_text(const Metadata& markers);

/// Writes `weights` to the file `path` as write_checkpoint_file with `options` does, and the text
/// `side` to FILE.masque.json next to it, which gets its name just before the weights get theirs;
/// removed if there is none.
void write_with_side_file(const std::string& path, const OutputWeights& weights,
                          const std::optional<std::string>& side, const WriteOptions& options);

/// write_with_side_file of `weights` to `path` by `options`, with `side_markers` in
/// FILE.masque.json.
void write_marked_file(const std::string& path, const OutputWeights& weights,
                       const Metadata& side_markers, const WriteOptions& options);

}  // namespace masque::store
