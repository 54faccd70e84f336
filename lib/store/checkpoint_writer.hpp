// Writing checkpoints: a description of every output byte first, then one transfer, then the
// rename that makes it real.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/output_folder.hpp"
#include "store/checkpoint.hpp"
#include "store/tensor_info.hpp"
#include "store/transfer.hpp"

namespace masque {

/// A tensor to write: its name, dtype and shape, and where its bytes come from.
struct OutputTensor {
  TensorInfo info;
  Source source;
};

/// A safetensors file to write.
struct OutputWeights {
  std::string name;  ///< file name inside an output folder
  Metadata metadata;
  std::uint64_t alignment = 8;
  std::vector<OutputTensor> tensors;
  unsigned mode = 0666;
};

/// Another file of an output folder: copied, or written from text.
struct OutputExtra {
  std::string name;  ///< relative path
  Source source;
  std::uint64_t size = 0;
  unsigned mode = 0666;
};

struct WriteOptions {
  int threads = 0;
  ProgressFunction progress;
  Existing existing = Existing::kRefuse;
  std::string input = {};  ///< what is read: never replaced by a folder
  /// Called with the path of the finished but not yet renamed output; what it throws discards it.
  std::function<void(const std::string& staged)> verify;
};

/// Writes one safetensors file to `path`, replacing it as a whole or not at all.
void write_checkpoint_file(const std::string& path, const OutputWeights& weights,
                           const WriteOptions& options);

/// Writes a folder with these weights and extras.
void write_checkpoint_folder(const std::string& path, const std::vector<OutputWeights>& weights,
                             const std::vector<OutputExtra>& extras, const WriteOptions& options);

/// The weights file as it is: every tensor copied in place, metadata with `format: pt` added if
/// there was none, alignment kept. Throws InputError if the header has fields that would be lost.
OutputWeights copy_of(const WeightsFile& file);

/// Adds a tensor: at its place if the tensors are in the reference writer's order, else behind the
/// one called `after`.
void insert_tensor(OutputWeights& weights, OutputTensor tensor, const std::string& after);

/// Every file of the checkpoint's folder except those in `except`, as copies. The files are kept
/// open in `opened`, which must outlive the writing. `left_out`: see list_files.
std::vector<OutputExtra> other_files(const std::string& folder,
                                     const std::vector<std::string>& except,
                                     std::deque<InputFile>& opened,
                                     std::vector<std::string>* left_out = nullptr);

}  // namespace masque
