// The tensors of a PyTorch file: which of a pickle's values is the state dict, and where its
// tensors lie.
#pragma once

#include <vector>

#include "store/format.hpp"
#include "store/torch/pickle.hpp"

namespace masque::store {

/// Where the storages of a pickle lie in its file.
struct TorchPlaces {
  std::vector<std::uint64_t> begin;  ///< bytes, by the storage's place in Pickle::storages
  bool big_endian = false;           ///< whether numbers are
  std::uint64_t pickle_begin = 0;    ///< byte of the pickle, for messages
};

/// The tensors of the state dict in `pickle`, whose storages lie at `places`, in its order: the
/// whole if it holds tensors mostly, else the only dict of tensors under one of the usual names
/// ("state_dict", "model" …). What else there is gets a note. Tensors of the same place, type,
/// sizes and strides become aliases of the first. Rules: "torch-state-dict", "duplicate-key",
/// "limit-tensors", "limit-name", "pickle-tensor".
Checked<FileContent> torch_content(const Pickle& pickle, const TorchPlaces& places);

}  // namespace masque::store
