// Writing checkpoints: a description of every output byte first, then one transfer, then the
// rename that makes it real.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/file/output_folder.hpp"
#include "store/checkpoint.hpp"
#include "store/weights_writer.hpp"

namespace masque::store {

/// Another file of an output folder: copied, or written from text.
struct OutputExtra {
  std::string name;        ///< relative path
  Source source;           ///< where its bytes come from
  std::uint64_t size = 0;  ///< bytes
  unsigned mode = 0666;    ///< permission bits, to which the umask applies
};

/// How a checkpoint is written.
struct WriteOptions {
  int threads = 0;                        ///< that write at the same time; ≤ 0: default_threads()
  ProgressFunction progress;              ///< bytes that are written; may be empty
  Existing existing = Existing::kRefuse;  ///< of an output folder; for a file it means nothing
  std::string input = {};                 ///< what is read: never replaced by a folder
  /// Of a folder's other files: whether a link to a file outside of it is copied, with a note, or
  /// refused.
  bool follow_links = true;
  /// Called with the path of the finished but not yet renamed output; what it throws discards it.
  std::function<void(const std::string& staged)> verify;
};

/// Writes `weights` to the file `path`, replacing it as a whole or not at all; a format of two
/// files (WeightsWriter::data) only where there is none. `options` say how. Throws InputError, also
/// while a change in place of the file is not finished, and Interrupted.
void write_checkpoint_file(const std::string& path, const OutputWeights& weights,
                           const WriteOptions& options);

/// Writes a folder `path` with these `weights` and `extras`, complete or not at all, as
/// OutputFolder. `options` say how. Throws InputError and Interrupted.
void write_checkpoint_folder(const std::string& path, const std::vector<OutputWeights>& weights,
                             const std::vector<OutputExtra>& extras, const WriteOptions& options);

/// Where the bytes of `tensor` come from: copied if they lie in order in `file`, else read. Both
/// must outlive the source.
Source source_of(const InputFile& file, const TensorInfo& tensor);

/// The weights file `file` as it is, in its format (a legacy PyTorch file becomes a zip): every
/// tensor, opaque ones too, copied in place, alignment kept; in safetensors metadata with
/// `format: pt` added if there was none. A file with checksums is read once to compare them. The
/// sources refer to `file`, which must outlive them. Throws InputError if checksums differ, and if
/// the header has fields that would be lost.
OutputWeights copy_of(const WeightsFile& file);

/// The bundle `checkpoint` as it is with all its data files in one, called as its index: as
/// copy_of. Tensors that lie in slices become whole. A MASQUE_CHECK: it is a bundle.
OutputWeights copy_of_bundle(const Checkpoint& checkpoint);

/// Names of the files that hold the tensors of `checkpoint`; of a bundle its index, too, and the
/// one data file that it has once it is written.
std::vector<std::string> weight_files(const Checkpoint& checkpoint);

/// If `checkpoint` is a bundle, the files of the other bundles of its folder
/// (files_of_other_bundles), which do not go where it goes: a folder with them would open as one of
/// them. Else none. Throws InputError.
std::vector<std::string> other_bundle_files(const Checkpoint& checkpoint);

/// What is reported to users of the `files` that are left out as those of other bundles; nothing if
/// there are none.
std::vector<std::string> other_bundle_notes(const std::vector<std::string>& files);

/// A tensor that is added to a file of weights, and the one that it stands after.
struct InsertedTensor {
  OutputTensor tensor;  ///< the tensor that is added
  std::string after;    ///< the name of a tensor of the file, or of one inserted before
};

/// Adds each of `inserted` to `weights`: at its place if the tensors are in the reference writer's
/// order, else after the one that it names, at the end if there is none. Throws Interrupted.
void insert_tensors(OutputWeights& weights, std::vector<InsertedTensor> inserted);

/// Every file of `folder` except those in `except`, as copies, and the tokenizer_config.json of a
/// folder that has it in its name only (text/open/google_folder.hpp). The files are kept open in
/// `opened`, which must outlive the writing. `notes` gets hidden entries that are no files and not
/// copied, and what is a link that leaves the folder. Throws InputError for such a link without
/// `follow_links`, and for any other entry that is no file or cannot be read: a model's file may be
/// missing in the output else.
std::vector<OutputExtra> other_files(const std::string& folder,
                                     const std::vector<std::string>& except,
                                     std::deque<InputFile>& opened, bool follow_links,
                                     std::vector<std::string>& notes);

}  // namespace masque::store
