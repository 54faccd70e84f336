// File formats as a registry: one file per format, store/FOLDER/NAME_format.cpp, registers itself.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.hpp"
#include "store/tensor_info.hpp"
#include "store/violation.hpp"

namespace masque::store {

/// A file that is about to be changed in place, as it will be.
struct PatchedFile {
  const InputFile* file = nullptr;  ///< as it is
  /// Bytes of tensors that change: offset and size, ascending, apart.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> changed;
  /// Fills `out` with bytes of the file from byte `offset` on, as they will be.
  std::function<void(std::uint64_t offset, MutableBytes out)> read;
};

/// Bytes of a file that follow from others.
struct Patch {
  std::uint64_t offset = 0;  ///< first byte in the file
  std::string bytes;         ///< what is written there
};

/// What else must change in a file whose tensors get new bytes of the same size: checksums. Throws
/// InputError if the file cannot be changed in place.
using InPlaceFunction = std::vector<Patch> (*)(const PatchedFile& file);

/// Compares all data of a file with their checksums: the first that differ. Throws InputError.
using CheckSumsFunction = std::function<std::optional<Violation>(const InputFile& file)>;

/// What a file of weights holds. Tensors are in data order.
struct FileContent {
  std::string_view writer = {};        ///< of its format; set by read_weights
  InPlaceFunction in_place = nullptr;  ///< of its format; set by read_weights
  CheckSumsFunction check_sums = {};   ///< of its format; set by read_weights; empty: no sums
  std::vector<TensorInfo> tensors;     ///< those with a DType
  Metadata metadata;                   ///< texts
  std::uint64_t data_begin = 0;        ///< byte where the data begins, if the format has one header
  std::uint64_t unknown_fields = 0;    ///< would be lost if the header were written again
  std::string unknown_field;           ///< the first of them
  std::vector<std::string> notes;      ///< legal but odd; worth a word
  /// A rule that is broken and does no harm: readers go on, `ckpt check` reports it.
  std::optional<Violation> tolerated = {};
  /// Tensors without a DType, in data order; their names are none of `tensors`.
  std::vector<OpaqueTensor> opaque = {};
  /// All metadata in file order, if the format has types for them.
  std::vector<TypedValue> typed = {};
  /// First byte and one past the last of tensors that the file has besides: of an optimizer, say.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> other_extents = {};
};

/// A readable format. The functions are thread-safe and never look at the file's name.
struct FileFormat {
  std::string_view name;    ///< stem: "safetensors"
  std::string_view writer;  ///< the WeightsWriter that writes a changed file of this format
  /// True if this file, which starts with these bytes (up to 64), is of the format. Throws
  /// InputError if it cannot be read.
  bool (*recognise)(const InputFile& file, Bytes first);
  /// Reads and validates everything but the tensors' bytes. Throws InputError if the file cannot
  /// be read.
  Checked<FileContent> (*read)(const InputFile& file);
  /// Compares all data with their checksums; nullptr: the format has none.
  std::optional<Violation> (*check_sums)(const InputFile& file) = nullptr;
  /// What follows from tensors that are written over; nullptr: such files are only written anew.
  InPlaceFunction in_place = nullptr;
};

/// All registered formats, sorted by name.
std::span<const FileFormat* const> file_formats();

/// Adds a format at program start.
struct FormatRegistration {
  /// Adds `format`, which must live as long as the process.
  explicit FormatRegistration(const FileFormat& format);
};

/// Reads the file of weights `file` of any registered format, recognised by its bytes. A file of
/// another kind that we know (a pickle, a web page, a compressed file, a Git LFS pointer …) breaks
/// the rule "unsupported-format", which says what it is; an unknown one is read as safetensors, so
/// that a damaged one gets the rule that it breaks. Throws InputError if the file cannot be read.
Checked<FileContent> read_weights(const InputFile& file);

/// Reads all data of `file`, which has this `content`, and returns the first that differ from their
/// checksum; nothing if all are right, and for formats without checksums. Throws InputError.
std::optional<Violation> check_sums(const InputFile& file, const FileContent& content);

}  // namespace masque::store
