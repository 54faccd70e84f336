// Writers of weights as a registry: one file per format, store/FOLDER/NAME_writer.cpp, registers
// itself.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/tensor_info.hpp"
#include "store/transfer.hpp"

namespace masque::store {

/// A tensor to write: its name, dtype and shape, and where its bytes come from.
struct OutputTensor {
  TensorInfo info;  ///< its begin, end, file and reader mean nothing here
  Source source;    ///< of its bytes, row-major, little-endian, without gaps
};

/// A tensor without a DType to write, for a writer of the format that it comes from.
struct OutputOpaque {
  OpaqueTensor info;       ///< its type, shape, bytes() and checksum are kept
  Source source;           ///< of its bytes, as its format has them
  std::string after = {};  ///< the tensor with a dtype that it stands after; empty: none
};

/// A file of weights to write.
struct OutputWeights {
  std::string name;                         ///< file name inside an output folder
  std::string_view writer = "safetensors";  ///< the WeightsWriter's name
  Metadata metadata;                        ///< lost where the writer has no place for it
  std::uint64_t alignment = 8;              ///< of the data, for safetensors; bytes
  std::vector<OutputTensor> tensors;        ///< in the order of the file, unless it has its own
  unsigned mode = 0666;                     ///< permission bits of a file in an output folder
  std::vector<OutputOpaque> opaque = {};    ///< refused by writers without has_opaque
  /// Order and types of metadata, for writers with has_typed. Texts are those of `metadata`; one
  /// that is no longer there is left out.
  std::vector<TypedValue> typed = {};
};

/// A run of bytes of a file that is planned.
struct PlannedPart {
  std::uint64_t size = 0;  ///< bytes
  Source source;           ///< where they come from
  int sum = -1;            ///< to which of FilePlan::sums it adds; none if negative
};

/// Bytes that are known only when the sums are.
struct LatePart {
  std::uint64_t offset = 0;  ///< first byte in the file
  std::string text;          ///< the bytes
};

/// Every byte of a file of weights: parts one after the other.
struct FilePlan {
  std::vector<PlannedPart> parts;        ///< from byte 0 of the file on
  std::size_t sums = 0;                  ///< how many are requested
  Checksum checksum = Checksum::kCrc32;  ///< of what kind they are
  /// What is written over the parts in the end, from the sums; empty: nothing.
  std::function<std::vector<LatePart>(std::span<const std::uint32_t> sums)> late = {};
  /// For a writer with `data`, whose parts are those of that file: the other file, from the sums.
  std::function<std::string(std::span<const std::uint32_t> sums)> index = {};
};

/// Returns `at` + `size`, a place in the file that messages call `path`. Throws InputError if it
/// does not fit in 64 bits.
std::uint64_t place_after(std::uint64_t at, std::uint64_t size, const std::string& path);

/// A format that can be written. The functions are thread-safe.
struct WeightsWriter {
  std::string_view name;       ///< stem: "safetensors", "torch", "npz", "npy"
  std::string_view extension;  ///< of a file, with its dot: an output with it is of this format
  std::string_view single;     ///< file of a folder: "model.safetensors"; empty: not in folders
  std::string_view shard;  ///< of several, for fmt: "model-{:05}-of-{:05}.safetensors"; empty: none
  bool has_metadata;       ///< keeps OutputWeights::metadata
  bool has_aliases = false;  ///< writes the bytes of a tensor with alias_of only once
  bool has_opaque = false;   ///< writes OutputWeights::opaque
  bool has_typed = false;    ///< writes OutputWeights::typed
  /// The tensors' bytes are in a second file, whose name ends with this instead of `extension`;
  /// empty: there is one file. The file with `extension` gets its name last.
  std::string_view data = {};
  bool (*holds)(DType dtype);  ///< whether it has a type for these elements
  /// Describes the file's bytes; sources are copied from `weights`. `path` is for messages. Throws
  /// InputError for what the format cannot say.
  FilePlan (*plan)(const OutputWeights& weights, const std::string& path);
};

/// All registered writers, sorted by name.
std::span<const WeightsWriter* const> weights_writers();

/// The writer called `name`. A MASQUE_CHECK: there is one, since names come from the registry.
const WeightsWriter& weights_writer(std::string_view name);

/// The writer whose extension `path` has, or one of its other usual ones (".pt", ".pth"); nullptr
/// if none.
const WeightsWriter* writer_for_path(std::string_view path);

/// Throws UsageError about the field "output" for a `path` that a file of weights would have: a
/// folder goes there.
void check_folder_output(std::string_view path);

/// The name (or path) of the file with the tensors' bytes next to `name`, for a `writer` with
/// `data` (a MASQUE_CHECK). Throws InputError if `name` has another extension than the writer's, or
/// no more than that.
std::string data_name(const WeightsWriter& writer, const std::string& name);

/// Adds a writer at program start.
struct WriterRegistration {
  /// Adds `writer`, which must live as long as the process.
  explicit WriterRegistration(const WeightsWriter& writer);
};

}  // namespace masque::store
