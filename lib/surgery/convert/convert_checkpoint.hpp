// From one layout of a checkpoint to another: format, element type, names, shards, one file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "surgery/convert/convert_values.hpp"

namespace masque::surgery {

/// Which names tensors get.
enum class NameStyle {
  kUsual,     ///< llama.cpp's in a GGUF file made of a model that llama.cpp has, else kKeep
  kKeep,      ///< those that they have
  kHf,        ///< those of transformers: see surgery/names/name_rules.hpp
  kTf,        ///< those of Google's TensorFlow checkpoints: see store/tensorflow/tf_plan.hpp
  kVariable,  ///< those of the variables of a TensorFlow 2 object graph: see
              ///< store/tensorflow/object_graph.hpp
  kLlamaCpp,  ///< those of llama.cpp, with its metadata: see surgery/convert/to_llama_cpp.hpp
};

/// What a conversion changes, and how it writes.
struct ConvertRequest {
  std::string format;          ///< a writer's name; empty: see convert_checkpoint
  std::optional<DType> dtype;  ///< for floating-point tensors; others keep theirs
  std::string blocks;  ///< instead of `dtype`, in llama.cpp's files: "Q8_0"; see LlamaCppModel
  std::optional<std::uint64_t> shard_bytes;           ///< most bytes of a shard; absent: one file
  OverflowPolicy overflow = OverflowPolicy::kRefuse;  ///< values that `dtype` cannot hold
  NameStyle names = NameStyle::kKeep;                 ///< of tensors in the output
  bool strict = false;        ///< names that no table knows: nothing is written
  bool skip_opaque = false;   ///< leaves tensors without a DType out, each with a note
  store::WriteOptions write;  ///< its input and verify are set by convert_checkpoint
};

/// What a conversion did.
struct ConvertResult {
  std::uint64_t tensors = 0;    ///< in the output, opaque ones too
  std::uint64_t converted = 0;  ///< of these, with a new dtype
  std::uint64_t renamed = 0;    ///< of these, with a new name
  std::uint64_t files = 0;      ///< files of weights
  std::vector<std::string>
      unknown;                     ///< names that no table knows: kept, or, if strict, all there is
  std::vector<std::string> notes;  ///< for users, each one line
};

/// Converts `in` to `out` as `request` says: a file if `out` has an extension of a writer, else a
/// folder. The format is that of the extension; for a folder the one requested, else the input's if
/// it can be written, else safetensors. A model of llama.cpp that runs (store::runs_gguf) becomes
/// with NameStyle::kHf, unless into a GGUF file, transformers' folder: safetensors unless requested
/// otherwise, decoded, with its config and tokenizer. From a folder to a folder every other file is
/// copied, and config.json's `dtype` or `torch_dtype` follows. With new names that are or were
/// TensorFlow's the config gets the name and the fields that go with them. Values are rounded once,
/// to nearest even. Tensors keep their order unless all files were in the reference writer's order,
/// in which the output then is too. Markers are kept wherever the format has its place for them
/// (store/markers), other metadata where it has one. Tensors without a DType go only into a file of
/// their own format. Tensors that share their bytes: see surgery/convert/aliases.hpp. Memory: a few
/// MiB a thread, and the largest tensor where one has to be unpacked or transposed. Throws
/// UsageError and InputError; `out` is then as it was.
ConvertResult convert_checkpoint(const std::string& in, const std::string& out,
                                 const ConvertRequest& request);

/// The note about the file `name` of the input that the output does not have; of the state of a
/// training it says what is lost.
std::string left_out_note(const std::string& name);

}  // namespace masque::surgery
