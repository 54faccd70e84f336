// The files next to a checkpoint's model that stay true of a model that was trained from it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::train {

/// What stands next to a checkpoint's model, by relative paths, sorted: all files but the weights,
/// config.json, those of a tokenizer (tokenizer_files), those that a training writes itself, and
/// hidden ones.
struct BesideModel {
  /// What other values of the same tensors leave as it is: generation_config.json, and
  /// sentence-transformers' settings and modules.
  std::vector<std::string> kept;
  std::vector<std::string> left_out;  ///< all others
};
/// Lists them; of a `checkpoint` that is a file `kept` alone, of a GGUF nothing. Throws InputError
/// if a folder, or a modules.json that is there, cannot be read.
BesideModel beside_model(const store::Checkpoint& checkpoint);

/// Returns beside_model(`checkpoint`).kept as files to write, those of links too. They are kept
/// open in `opened`, which must stay until they are written. Throws InputError.
std::vector<store::OutputExtra> kept_files(const store::Checkpoint& checkpoint,
                                           std::deque<InputFile>& opened);

/// What is reported of the files `names`, sorted, next to a model that the new folder does not
/// have, those of a folder in it by its name; nothing if there are none.
std::vector<std::string> left_out_notes(const std::vector<std::string>& names);

}  // namespace masque::train
