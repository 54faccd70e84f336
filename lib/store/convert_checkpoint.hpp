// From one layout of a checkpoint to another: element type, shards, one file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque {

/// What to do with finite values beyond the largest of the new type.
enum class OverflowPolicy {
  kRefuse,    ///< InputError naming the tensor
  kSaturate,  ///< the largest finite value of the type
};

struct ConvertRequest {
  std::optional<DType> dtype;                ///< for floating-point tensors; others keep theirs
  std::optional<std::uint64_t> shard_bytes;  ///< absent: one file
  OverflowPolicy overflow = OverflowPolicy::kRefuse;
  WriteOptions write;
};

struct ConvertResult {
  std::uint64_t tensors = 0;
  std::uint64_t converted = 0;  ///< of these, with a new dtype
  std::uint64_t files = 0;      ///< files of weights
  std::vector<std::string> notes;
};

/// Converts `in` to `out`: a file if `out` ends in ".safetensors", else a folder. From a folder to
/// a folder every other file is copied, and config.json's `dtype` or `torch_dtype` follows. Values
/// are rounded once, to nearest even. Tensors keep their order unless all files were in the
/// reference writer's order, in which the output then is too. Memory: a few MiB a thread.
ConvertResult convert_checkpoint(const std::string& in, const std::string& out,
                                 const ConvertRequest& request);

}  // namespace masque
