// Models that are split into several GGUF files: which files, and whether they belong together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/format.hpp"

namespace masque::store {

/// The names of all parts of the split model that the file `name` is a part of by its `metadata`
/// (split.no, split.count), in their order: "NAME-00001-of-00003.gguf" and so on. Empty for a whole
/// model, and for a file whose name does not end so, beside which the others cannot be found.
/// Throws InputError, with `path`, if the name says another number or count than the metadata.
std::vector<std::string> gguf_part_names(const std::string& name,
                                         std::span<const TypedValue> metadata,
                                         const std::string& path);

/// The first one of `names`, all GGUF files of a folder, if they are the parts of one model by
/// their names; nothing otherwise.
std::optional<std::string> first_gguf_part(std::span<const std::string> names);

/// A file of a split model.
struct GgufPartFile {
  std::string path;                      ///< for messages
  const FileContent* content = nullptr;  ///< what its header says
};
/// Throws InputError, which names the file, unless `files`, at least one, are all parts of one
/// model, in their order: each with its number, their count and the number of tensors that all have
/// together (split.tensors.count), and none with metadata that the first one has otherwise or not
/// at all.
void check_gguf_parts(std::span<const GgufPartFile> files);

}  // namespace masque::store
