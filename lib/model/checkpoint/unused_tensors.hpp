// Tensors of a checkpoint that no part of its model uses: which of them show that it is another
// kind of model.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/types.hpp"
#include "model/design.hpp"
#include "model/family.hpp"

namespace masque::model {

/// Judges names of unused tensors. For one thread.
class UnusedTensors {
 public:
  /// Of a model of `model`, which must outlive this, whose base has the `prefix` in the file, with
  /// so many different `layers`; `used` are the names of the tensors that it uses.
  UnusedTensors(const ModelPlan& model, std::string prefix, Index layers,
                const std::unordered_set<std::string>& used);

  /// Throws InputError for a tensor `name` of the checkpoint at `path` that would change what the
  /// model computes: one in a part of the model where it has tensors (embeddings, layers), or next
  /// to a tensor that it uses ("X.bias" of "X.weight"). Buffers of other versions of transformers
  /// change nothing, nor do layers after the last one of config.json.
  void check(const std::string& path, const std::string& name);

  /// One line about layers after the last one of `design`, if check() has seen some.
  std::optional<std::string> note(const Design& design) const;

 private:
  bool is_of_further_layer(const std::string& name);

  const ModelPlan& model_;
  std::string prefix_;
  Index layers_;
  std::set<std::string, std::less<>> parts_;    ///< "bert.encoder": how names of rows begin
  std::set<std::string, std::less<>> modules_;  ///< of used tensors: names up to the last dot
  Index most_layers_ = 0;                       ///< one past the last layer that names have
};

}  // namespace masque::model
