// A checkpoint as users name it: a file, a Hugging Face folder, an index, or a TensorFlow prefix.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file/file.hpp"
#include "store/format.hpp"
#include "store/shard_index.hpp"
#include "store/tensorflow/bundle.hpp"

namespace masque {
class LockedFiles;
}

namespace masque::store {

/// One file of weights of a checkpoint.
struct WeightsFile {
  std::string name;     ///< inside the checkpoint's folder
  InputFile file;       ///< the file, open
  FileContent content;  ///< what its header says
};

/// An opened checkpoint: every header read and validated, no weights read. Movable; reads are
/// thread-safe. Memory: about 400 bytes a tensor.
class Checkpoint {
 public:
  const std::string& path() const { return path_; }      ///< as given
  const std::string& folder() const { return folder_; }  ///< where its files are
  bool is_folder() const { return is_folder_; }          ///< a folder or an index was given
  /// Whether the folder has an adapter of PEFT (adapter_config.json) besides these weights, which
  /// transformers then adds to them; not of the weights of an adapter.
  bool has_adapter() const { return has_adapter_; }
  /// The files of weights, at least one; TensorInfo::file is an index in it.
  const std::vector<WeightsFile>& files() const { return files_; }
  /// Of shards with a JSON index: what it says.
  const std::optional<ShardIndex>& index() const { return index_; }
  /// Of a TensorFlow checkpoint: its index; files() are the data files, one for each shard.
  const std::optional<BundleIndex>& bundle() const { return bundle_; }
  /// File of index() or bundle() inside the folder; empty: there is neither.
  const std::string& index_name() const { return index_name_; }
  /// Legal but odd things, each one line.
  const std::vector<std::string>& notes() const { return notes_; }

  /// All tensors, by file and place in it.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  /// The tensor called `name`, one of tensors(); nullptr if there is none. Cost O(1).
  const TensorInfo* find(const std::string& name) const;
  /// The tensor called `name`, one of tensors(). Throws InputError naming the nearest one, or the
  /// type of an opaque one.
  const TensorInfo& get(const std::string& name) const;

  /// Tensors without a DType, by file and place in it. No name is one of tensors() too.
  const std::vector<OpaqueTensor>& opaque() const { return opaque_; }
  /// The opaque tensor called `name`, one of opaque(); nullptr if there is none. Cost O(1).
  const OpaqueTensor* find_opaque(const std::string& name) const;

  /// Reads out.size() bytes of `tensor` from byte `offset` of it into `out`; a range beyond its end
  /// is a MASQUE_CHECK. Thread-safe. Throws InputError.
  void read(const TensorInfo& tensor, std::uint64_t offset, MutableBytes out) const;

  /// Sum of all tensors' bytes, opaque ones left out.
  std::uint64_t tensor_bytes() const;

  /// Whether quantised weights are in tensors() as what they mean, in the place of what is stored
  /// of them: open_decoded() (store/quantized).
  bool is_decoded() const { return !decoded_note_.empty(); }
  /// What is said of them; empty if !is_decoded(). One of notes().
  const std::string& decoded_note() const { return decoded_note_; }
  /// Puts `tensors`, of these files, in the place of tensors(), and says `note` of them. Called
  /// once, before anyone has a pointer to one of tensors().
  void put_decoded(std::vector<TensorInfo> tensors, std::string note);

 private:
  friend Checked<Checkpoint> open_checked(const std::string& path);
  std::optional<Violation> add_file(InputFile file, std::string name);
  std::optional<Violation> add_content(InputFile file, std::string name, FileContent content);
  std::optional<Violation> add_opaque(const FileContent& content, const InputFile& file);
  std::optional<Violation> open_index(const std::string& name);
  std::optional<Violation> open_bundle(const std::string& name);
  std::optional<Violation> match_index();

  std::string path_;
  std::string folder_;
  bool is_folder_ = false;
  bool has_adapter_ = false;
  std::vector<WeightsFile> files_;
  std::optional<ShardIndex> index_;
  std::optional<BundleIndex> bundle_;
  std::string index_name_;
  std::vector<std::string> notes_;
  std::string decoded_note_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<OpaqueTensor> opaque_;
  std::unordered_map<std::string, std::size_t> opaque_by_name_;
};

/// The file by which a folder holds an adapter of PEFT.
inline constexpr const char* kAdapterConfig = "adapter_config.json";
/// The note of Checkpoint::notes() where has_adapter() is true.
inline constexpr const char* kAdapterNote =
    "'adapter_config.json': the adapter of PEFT next to the weights is no part of them; ckpt "
    "merge-adapter adds it";

/// Whether a file `name` of a folder would be opened, or make the choice unclear, instead of the
/// weights `single` there.
bool is_opened_before(const std::string& name, const std::string& single);

/// Opens the checkpoint that `path` stands for. In a folder `model.safetensors` is taken first,
/// then `model.safetensors.index.json`, `pytorch_model.bin`, `pytorch_model.bin.index.json` (the
/// order of transformers), then the only `*.safetensors` file, then the only `*.bin`, `*.pt`,
/// `*.pth` or `*.npz`, then the only `*.gguf` or the parts of one model, then the TensorFlow one
/// that is alone or that the file `checkpoint` names: also opened by its PREFIX and PREFIX.index. A
/// split GGUF model is opened by any part. Throws InputError if something cannot be read, or if a
/// change in place of one of its files is not finished; a broken rule is returned.
Checked<Checkpoint> open_checked(const std::string& path);

/// Opens the checkpoint that `path` stands for, as open_checked; a broken rule is thrown as
/// InputError too.
Checkpoint open_checkpoint(const std::string& path);

/// Locks the files of weights that open_checkpoint(`path`) would open, to change them in place:
/// before they are opened, so that nobody changes them between reading and writing. Waits up to
/// `wait_seconds` for each of them. Throws as LockedFiles, and InputError for a broken index.
LockedFiles lock_checkpoint(const std::string& path, double wait_seconds);

}  // namespace masque::store
