// Tensors that share their bytes, when they are written in another format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/config.hpp"
#include "store/weights_writer.hpp"

namespace masque::surgery {

/// Whether the tensors `a` and `b` of a checkpoint are one, stored once in a file under two names.
bool share_bytes(const store::TensorInfo& a, const store::TensorInfo& b);

/// For `weights` whose writer writes every tensor's bytes: of tensors that share them, those that
/// `config` ties to another one are left out, as transformers does when it saves; the others become
/// tensors of their own. Adds a note for each to `notes`. For a writer that can share bytes nothing
/// changes.
void settle_aliases(store::OutputWeights& weights, const std::optional<store::ModelConfig>& config,
                    std::vector<std::string>& notes);

/// After the tensors of `weights` were sorted or split into files: the first of those that share
/// bytes in this file has them, the others refer to it by TensorInfo::alias_of.
void order_aliases(store::OutputWeights& weights);

}  // namespace masque::surgery
