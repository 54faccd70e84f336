// A LoRA adapter of PEFT, added to the weights that it was trained for. Hu 2021, arXiv:2106.09685.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque::surgery {

/// What merge_adapter() did.
struct MergeReport {
  std::uint64_t merged = 0;        ///< weights with a product added
  std::uint64_t replaced = 0;      ///< tensors that the adapter has whole: modules_to_save, biases
  std::vector<std::string> notes;  ///< for people, each one line
};

/// Writes the checkpoint `base` to `out` with the weights of `adapter`, a folder with
/// adapter_config.json and adapter_model.safetensors (or adapter_model.bin): W + s · B · A for each
/// pair, s = α/r, with use_rslora α/√r, and r and α of rank_pattern and alpha_pattern; transposed
/// where the file has a weight as (in, out). Whole tensors replace those of the base. As PEFT's
/// merge_and_unload, but computed in double and rounded once. A word table of modules_to_save to
/// which the head is tied leaves the head the old table: it is untied. `base` may be the folder of
/// `adapter`, whose files are then left out of `out`. Throws InputError for keys of
/// adapter_config.json that would change the result in another way (DoRA, …), by name, for tensors
/// of modules that its keys leave out, for tensors of the adapter without a place in the base, for
/// shapes that do not fit, for a head that cannot be untied, and as write_edit with these
/// `options`.
MergeReport merge_adapter(const std::string& base, const std::string& adapter,
                          const std::string& out, const store::WriteOptions& options);

}  // namespace masque::surgery
