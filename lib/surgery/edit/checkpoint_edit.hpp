// Changes to a checkpoint, described as a whole before any byte is written: tensors, markers, the
// files next to them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"
#include "store/markers.hpp"

namespace masque::surgery {

/// A set of changes to a checkpoint, which must outlive it. For one thread.
class CheckpointEdit {
 public:
  /// An edit of `checkpoint` without any change yet. Throws InputError if the file holds two models
  /// of one vocabulary (holds_two_models), of which an edit would reach one.
  explicit CheckpointEdit(const store::Checkpoint& checkpoint);

  /// The checkpoint as it is, without the changes.
  const store::Checkpoint& checkpoint() const { return *checkpoint_; }

  /// The stored tensor `name` gets the bytes of `source` and the shape `shape`; its dtype stays.
  /// Replaces an earlier replacement. Of a format that can store two tensors as one, these stay one
  /// if both get sources of one Computed::origin. What `source` refers to must live until the edit
  /// is written and verified. Throws InputError if no such tensor is stored.
  void replace(const std::string& name, Shape shape, store::Source source);
  /// A new `tensor`, into the file that holds the stored tensor `neighbour`, after it where files
  /// are not sorted. Throws InputError if the checkpoint has a tensor of its name.
  void add(store::OutputTensor tensor, const std::string& neighbour);
  /// Removes the stored tensor `name`. Throws InputError if there is none.
  void remove(const std::string& name);
  /// The marker `key` becomes `value`: in the metadata of the file that holds `neighbour`; where
  /// the format has none or the file is changed in place, in config.json, or for a lone file or
  /// without a config in FILE.masque.json next to it. It goes from where it was before. Without a
  /// value it is removed. Throws InputError if `neighbour` is not stored.
  void set_marker(const std::string& neighbour, std::string_view key,
                  std::optional<std::string> value);
  /// Metadata with a type: `value` replaces that of the same key in every file that has it. Must
  /// not be a text (type STRING).
  void set_typed(store::TypedValue value);
  /// The file `name` of the folder has this `text`, instead of what it had or as a new file. Only
  /// for folders.
  void set_file(const std::string& name, std::string text);
  /// Another file of weights of the folder, in place of one of its name. Its sources must live
  /// until it is written.
  void set_weights(store::OutputWeights weights);
  /// The file `name` of the folder is not copied.
  void drop_file(const std::string& name);
  /// The member `name` of the folder's config becomes `json`, a JSON text. Does nothing without a
  /// config; then false.
  bool set_config(std::string_view name, const std::string& json);
  /// The text of the file `name` as set_file() and drop_file() leave it: set before, or of the
  /// folder (of a lone file: of the folder in which it lies); nothing if there is none. Throws
  /// InputError if it cannot be read or is larger than 256 MiB.
  std::optional<std::string> file_text(const std::string& name) const;

  /// Whether remove() was called for the tensor `name`.
  bool removes(const std::string& name) const { return removed_.contains(name); }
  /// Whether drop_file() was called last for the file `name`, not set_file().
  bool drops(const std::string& name) const;

  /// Why the edit cannot be made in place; std::nullopt if only bytes of tensors and texts of files
  /// change.
  std::optional<std::string> against_in_place() const;
  /// Why the edit would affect other TensorFlow bundles of the folder: a text that they share
  /// (config.json with its markers, the vocabulary) would change. std::nullopt if none does.
  std::optional<std::string> against_shared_files() const;
  /// Whether the edit can be made in place, as against_in_place() says.
  bool keeps_layout() const { return !against_in_place(); }
  /// Names of tensors that were replaced, sorted.
  std::vector<std::string> replaced() const;
  /// Names of tensors that were added, in order.
  std::vector<std::string> added() const;
  /// Copies of the tensors that were added, in order. To be called before output().
  std::vector<store::OutputTensor> added_tensors() const;
  /// Metadata with a type that change, by key.
  const std::map<std::string, store::TypedValue>& typed() const { return typed_; }
  /// Names of the folder's files with another text than before, sorted.
  std::vector<std::string> edited_files() const;

  /// All that is to be written.
  struct Output {
    std::vector<store::OutputWeights> weights;  ///< files of weights that change
    std::vector<store::OutputExtra> extras;     ///< everything else of a folder
    std::deque<InputFile> opened;               ///< what the extras copy from
    std::vector<std::string> notes;             ///< of files that are not copied
  };
  /// What write_edit() writes. Moves the sources of added tensors and of set_weights() out: to be
  /// called once. Links of the folder to files outside of it are copied with `follow_links`,
  /// otherwise refused. Throws InputError for these, and for files that cannot be read or copied.
  Output output(bool follow_links);
  /// The new tensor `name` with its source; nullptr if it is not replaced. Valid until the next
  /// change of the edit.
  const store::OutputTensor* replacement(const std::string& name) const;
  /// For a lone file: the text that goes into FILE.masque.json next to the output; nothing: no such
  /// file is needed.
  std::optional<std::string> side_text() const;

  /// A marker that goes from the metadata of a file.
  struct ErasedMetadata {
    std::size_t file;  ///< of checkpoint().files()
    std::string key;   ///< of the marker
  };
  /// For a change in place: texts of files of the folder, markers among them.
  std::map<std::string, std::string> texts_in_place() const;
  /// For a change in place: markers that stand in the metadata now.
  std::vector<ErasedMetadata> erased_metadata() const;

 private:
  struct Addition {
    store::OutputTensor tensor;
    std::string neighbour;
  };
  struct Marker {
    std::size_t file;
    std::string key;
    std::optional<std::string> value;
  };

  bool changes(const store::WeightsFile& file) const;
  store::OutputWeights changed(const store::WeightsFile& file);
  /// Weights of those files that `holds` is true for.
  store::OutputWeights changed(store::OutputWeights weights,
                               const std::function<bool(std::size_t file)>& holds);
  /// All data files of a bundle as one, if any of them changes; `replaced` ← its files.
  void add_bundle(Output& out, std::vector<std::string>& replaced);
  std::string edited_index() const;
  /// Texts of config.json and FILE.masque.json with the markers in them, or without those that are
  /// elsewhere now.
  std::map<std::string, std::string> marker_texts(bool in_place) const;

  const store::Checkpoint* checkpoint_;
  std::map<std::string, store::OutputTensor> replaced_;
  std::vector<Addition> added_;
  std::map<std::string, bool> removed_;
  std::vector<Marker> markers_;
  std::map<std::string, store::TypedValue> typed_;
  std::map<std::string, std::optional<std::string>> files_;  ///< nothing: dropped
  std::vector<store::OutputWeights> other_weights_;          ///< of set_weights()
};

/// Writes the changed checkpoint of `edit` to `out`: a file to a file, a folder (or index) to a
/// folder with every other file copied. To be called once for an edit. `options.input` is set here.
/// Throws UsageError (a folder into a file name) and InputError; `out` is then as it was, with
/// FILE.masque.json next to a lone file, which gets its name just before the weights get theirs.
/// Returns notes for people about files that are not copied.
std::vector<std::string> write_edit(CheckpointEdit& edit, const std::string& out,
                                    store::WriteOptions options);

// Weights in other formats that lie next to a checkpoint.

/// Files of the folder that hold weights, judged by their names, and are not part of the
/// checkpoint: edits do not change them. Without files of other TensorFlow bundles, which are not
/// copied. Empty for a lone file. Throws InputError if the folder cannot be read.
std::vector<std::string> stale_copies(const store::Checkpoint& checkpoint);

/// The note about such a file `name`, which `what` ("is copied", "stays") unchanged.
std::string stale_copy_note(const std::string& name, std::string_view what);

}  // namespace masque::surgery
