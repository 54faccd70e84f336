// Tensors by the names of transformers, whatever names their file has.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "store/checkpoint.hpp"
#include "store/config.hpp"

namespace masque::store {

struct TfFamily;

/// The tensors of a checkpoint as transformers calls them: under their own names, or, where these
/// are TensorFlow's, under those that their table gives. The checkpoint must outlive it.
/// Thread-safe.
class NamedTensors {
 public:
  /// Of no checkpoint: only to be assigned to.
  NamedTensors() = default;
  /// The tensors of `checkpoint`, whose `config` helps to find out whose names they are. Memory:
  /// about 200 bytes a tensor with TensorFlow's names, else none.
  NamedTensors(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config);
  /// The tensors of `checkpoint`, a model of llama.cpp, as gguf_tensors() has them. Throws as that
  /// does. Memory: about 400 bytes a tensor.
  static NamedTensors of_llama_cpp(const Checkpoint& checkpoint);

  /// The tensor that transformers calls `name`, one of the checkpoint's or of llama.cpp's model,
  /// valid as long as both; nullptr if there is none.
  /// Cost O(1).
  const TensorInfo* find(const std::string& name) const;
  /// The tensor that transformers calls `name`. Throws InputError, as Checkpoint::get, with the
  /// name that the file would have.
  const TensorInfo& get(const std::string& name) const;
  /// Whether the file has the tensor that transformers calls `name` without a DType.
  bool is_opaque(const std::string& name) const;
  /// Whether the rows of `tensor`, one that find() or get() returned, are the columns of what
  /// transformers has.
  bool is_transposed(const TensorInfo& tensor) const { return transposed_.contains(&tensor); }
  /// The name that a file like this one has for the tensor that transformers calls `name`.
  std::string own_name(const std::string& name) const;
  /// Of a model of llama.cpp all its tensors by their names, which live as long as this; nullptr of
  /// others.
  const std::map<std::string, TensorInfo>* made() const { return made_.get(); }
  /// The table of TensorFlow's names; nullptr if the names are those of transformers.
  const TfFamily* tf() const { return tf_; }

 private:
  const Checkpoint* checkpoint_ = nullptr;
  /// With llama.cpp's names: the tensors as transformers would have them.
  std::shared_ptr<const std::map<std::string, TensorInfo>> made_;
  const TfFamily* tf_ = nullptr;
  std::unordered_map<std::string, const TensorInfo*> by_name_;
  std::unordered_set<const TensorInfo*> transposed_;
};

}  // namespace masque::store
