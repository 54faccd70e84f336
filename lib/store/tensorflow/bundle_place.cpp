#include "store/tensorflow/bundle_place.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "store/tensorflow/leveldb_table.hpp"

namespace masque::store {

namespace {

constexpr std::string_view kIndex = ".index";
constexpr std::string_view kGraph = ".meta";
constexpr std::string_view kList = "checkpoint";
constexpr std::string_view kSavedModel = "variables/variables.index";
constexpr std::uint64_t kMaxListBytes = 1 << 20;

/// Whether a file of this name is an index: its first data file is there, or it ends as one does.
bool is_index(const std::string& folder, const std::vector<std::string>& names,
              const std::string& name) {
  if (!name.ends_with(kIndex) || name.find('/') != std::string::npos) return false;
  const std::string data = name.substr(0, name.size() - kIndex.size()) + ".data-00000-of-";
  if (std::ranges::any_of(names, [&](const auto& other) { return other.starts_with(data); }))
    return true;
  return is_table(InputFile::open(join(folder, name)));
}

/// What the text file `checkpoint` of a folder calls its newest one; empty: nothing, or nothing
/// plain. Only the last part of the path is taken: the folder may have been moved, and a path must
/// not lead out of it.
std::string newest_of(const std::string& folder, const std::vector<std::string>& names) {
  constexpr std::string_view kField = "model_checkpoint_path: \"";
  if (std::ranges::find(names, kList) == names.end()) return {};
  const InputFile file = InputFile::open(join(folder, kList));
  if (file.size() > kMaxListBytes) return {};
  const std::string text = file.read_all(kMaxListBytes);
  if (!text.starts_with(kField)) return {};
  const std::size_t end = text.find_first_of("\"\n\\", kField.size());
  if (end == std::string::npos || text[end] != '"') return {};
  const std::string path = text.substr(kField.size(), end - kField.size());
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string bundle_shard_name(std::string_view prefix, std::uint64_t shard, std::uint64_t shards) {
  return fmt::format("{}.data-{:05}-of-{:05}", prefix, shard, shards);
}

std::vector<std::string> bundle_shard_names(std::string_view index_name, std::uint64_t shards) {
  const std::string_view prefix = index_name.substr(0, index_name.size() - kIndex.size());
  std::vector<std::string> names;
  names.reserve(shards);
  for (std::uint64_t i = 0; i < shards; ++i) names.push_back(bundle_shard_name(prefix, i, shards));
  return names;
}

std::optional<std::string> bundle_prefix_of(std::string_view shard_name) {
  constexpr std::string_view kPattern = ".data-00000-of-00000";
  if (shard_name.size() <= kPattern.size()) return std::nullopt;
  const std::size_t begin = shard_name.size() - kPattern.size();
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    const char found = shard_name[begin + i];
    const bool digit = found >= '0' && found <= '9';
    if (kPattern[i] == '0' ? !digit : found != kPattern[i]) return std::nullopt;
  }
  return std::string(shard_name.substr(0, begin));
}

bool is_bundle_file(std::string_view name) {
  return name.ends_with(kIndex) || name.ends_with(kGraph) || name == kList ||
         bundle_prefix_of(name).has_value();
}

std::vector<std::string> files_of_other_bundles(const std::string& folder,
                                                const std::vector<std::string>& names,
                                                const std::string& index) {
  std::vector<std::string> prefixes;
  for (const std::string& name : names) {
    if (name != index && is_index(folder, names, name))
      prefixes.push_back(name.substr(0, name.size() - kIndex.size()));
  }
  std::vector<std::string> found;
  const auto is_of_other = [&](const std::string& name) {
    if (name == kList) return !prefixes.empty();
    return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
      return name == prefix + std::string(kIndex) || name == prefix + std::string(kGraph) ||
             bundle_prefix_of(name) == prefix;
    });
  };
  std::ranges::copy_if(names, std::back_inserter(found), is_of_other);
  return found;
}

std::optional<std::string> bundle_index_of(const std::string& path) {
  if (path.ends_with(kIndex)) return path;
  if (!exists(path)) {
    std::string index = fmt::format("{}{}", path, kIndex);
    return exists(index) ? std::optional(std::move(index)) : std::nullopt;
  }
  if (const auto prefix = bundle_prefix_of(path)) {
    throw InputError(
        path,
        fmt::format("is a data file of a TensorFlow checkpoint: give '{}' (the index '{}{}' {})",
                    escape(*prefix), escape(*prefix), kIndex,
                    exists(*prefix + std::string(kIndex)) ? "is there" : "is missing"));
  }
  if (!path.ends_with(kGraph)) return std::nullopt;
  const std::string prefix = path.substr(0, path.size() - kGraph.size());
  if (exists(prefix + std::string(kIndex))) {
    throw InputError(
        path, fmt::format("is the graph of a TensorFlow checkpoint: give '{}'", escape(prefix)));
  }
  return std::nullopt;
}

std::optional<std::string> find_bundle_index(const std::string& folder,
                                             const std::vector<std::string>& names,
                                             std::vector<std::string>& notes) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const auto& name) { return is_index(folder, names, name); });
  if (found.empty()) {
    if (std::ranges::find(names, kSavedModel) == names.end()) return std::nullopt;
    const std::string inside = join(folder, kSavedModel.substr(0, kSavedModel.rfind('.')));
    throw InputError(folder,
                     fmt::format("is a SavedModel: give its checkpoint '{}'", escape(inside)));
  }
  if (found.size() == 1) return found[0];
  const std::string newest = newest_of(folder, names) + std::string(kIndex);
  if (std::ranges::find(found, newest) == found.end()) {
    throw InputError(
        folder,
        fmt::format("has {} TensorFlow checkpoints: give one, like '{}'", found.size(),
                    escape(join(folder, found[0].substr(0, found[0].size() - kIndex.size())))));
  }
  notes.push_back(fmt::format("using '{}', which the file 'checkpoint' names (others ignored: {})",
                              escape(newest), found.size() - 1));
  return newest;
}

}  // namespace masque::store
