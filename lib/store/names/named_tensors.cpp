#include "store/names/named_tensors.hpp"

#include "store/gguf/gguf_model.hpp"
#include "store/tensorflow/tf_plan.hpp"

namespace masque::store {

NamedTensors::NamedTensors(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config)
    : checkpoint_(&checkpoint), tf_(find_tf_family(checkpoint, config)) {
  if (tf_ == nullptr) return;
  for (const auto& [own, name] : hf_of_tf(checkpoint, *tf_).names) {
    const TensorInfo* tensor = checkpoint.find(own);
    by_name_.emplace(name.name, tensor);
    if (name.transposed) transposed_.insert(tensor);
  }
}

NamedTensors NamedTensors::of_llama_cpp(const Checkpoint& checkpoint) {
  NamedTensors names;
  names.checkpoint_ = &checkpoint;
  names.made_ = std::make_shared<const std::map<std::string, TensorInfo>>(gguf_tensors(checkpoint));
  for (const auto& [name, tensor] : *names.made_) {
    if (is_transposed_in_gguf(checkpoint, tensor)) names.transposed_.insert(&tensor);
  }
  return names;
}

const TensorInfo* NamedTensors::find(const std::string& name) const {
  if (made_ != nullptr) {
    const auto found = made_->find(name);
    return found == made_->end() ? nullptr : &found->second;
  }
  if (tf_ == nullptr) return checkpoint_->find(name);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const TensorInfo& NamedTensors::get(const std::string& name) const {
  if (const TensorInfo* tensor = find(name)) return *tensor;
  return checkpoint_->get(own_name(name));
}

bool NamedTensors::is_opaque(const std::string& name) const {
  return checkpoint_->find_opaque(own_name(name)) != nullptr;
}

std::string NamedTensors::own_name(const std::string& name) const {
  if (made_ != nullptr) return gguf_own_name(*checkpoint_, name);
  const auto own = tf_ == nullptr ? std::nullopt : tf_name(*tf_, name);
  return own ? own->name : name;
}

}  // namespace masque::store
