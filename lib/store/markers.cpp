#include "store/markers.hpp"

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/error.hpp"
#include "base/file/os.hpp"
#include "base/file/output_file.hpp"
#include "base/json/json.hpp"
#include "store/config.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kMostSideBytes = 1 << 20;

std::optional<ModelConfig> side_of(const Checkpoint& checkpoint, const WeightsFile& file) {
  const std::string path = side_path(join(checkpoint.folder(), weights_name(checkpoint, file)));
  if (!exists(path)) return std::nullopt;
  return ModelConfig::parse(InputFile::open(path).read_all(kMostSideBytes), path);
}

/// Whether a file is what its folder is loaded from.
bool is_folder_weights(const std::string& name) {
  return name.starts_with("model.") || name.starts_with("model-") ||
         name.starts_with("pytorch_model.") || name.starts_with("pytorch_model-");
}

/// Adds the members that are markers, where they are new.
void add_members(const ModelConfig& object, std::map<std::string, std::string>& markers) {
  for (const JsonMember& member : parse_json_file(object.text(), object.path()).members) {
    if (!member.name.starts_with(kMarkerPrefix)) continue;
    if (const auto value = object.string(member.name)) markers.emplace(member.name, *value);
  }
}

}  // namespace

std::optional<ModelConfig> own_config(const Checkpoint& checkpoint) {
  if (!checkpoint.is_folder() && !is_folder_weights(checkpoint.files().front().name))
    return std::nullopt;
  return ModelConfig::find(checkpoint.folder());
}

std::string side_path(const std::string& path) { return path + ".masque.json"; }

const std::string& weights_name(const Checkpoint& checkpoint, const WeightsFile& file) {
  return checkpoint.bundle() ? checkpoint.index_name() : file.name;
}

std::optional<std::string> find_marker(const Checkpoint& checkpoint, const std::string& neighbour,
                                       std::string_view key) {
  const WeightsFile& file = checkpoint.files()[checkpoint.get(neighbour).file];
  if (const std::string* found = find_metadata(file.content.metadata, key)) return *found;
  if (const auto side = side_of(checkpoint, file)) {
    if (auto value = side->string(key)) return value;
  }
  const auto config = own_config(checkpoint);
  return config ? config->string(key) : std::nullopt;
}

Metadata markers_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> markers;
  for (const WeightsFile& file : checkpoint.files()) {
    for (const auto& [key, value] : file.content.metadata) {
      if (key.starts_with(kMarkerPrefix)) markers.emplace(key, value);
    }
    if (const auto side = side_of(checkpoint, file)) add_members(*side, markers);
  }
  if (const auto config = own_config(checkpoint)) add_members(*config, markers);
  return {markers.begin(), markers.end()};
}

std::string with_markers(const std::string& config, const Metadata& markers) {
  std::string text = config;
  for (const JsonMember& member : parse_json_file(config, "config.json").members) {
    if (member.name.starts_with(kMarkerPrefix) && find_metadata(markers, member.name) == nullptr)
      text = erase_json_member(text, {member.name});
  }
  for (const auto& [key, value] : markers) text = set_json_member(text, {key}, quote_json(value));
  return text;
}

std::string side_file_text(const Metadata& markers) { return with_markers("{}\n", markers); }

void write_with_side_file(const std::string& path, const OutputWeights& weights,
                          const std::optional<std::string>& side, const WriteOptions& options) {
  const std::string side_name = side_path(path);
  std::optional<OutputFile> side_file;
  WriteOptions staged = options;
  if (side) {
    side_file.emplace(side_name);
    write_at(side_file->descriptor(), 0, as_bytes(*side), side_name);
    staged.verify = [&](const std::string& path_of_weights) {
      if (options.verify) options.verify(path_of_weights);
      side_file->commit();
    };
  }
  write_checkpoint_file(path, weights, staged);
  if (side || !exists(side_name)) return;
  const Descriptor folder = open_folder(folder_of(side_name));
  if (os::unlink_at(folder.get(), base_name(side_name).c_str()) != 0 || os::sync(folder.get()) != 0)
    throw system_error(side_name, "removing", errno);
}

void write_marked_file(const std::string& path, const OutputWeights& weights,
                       const Metadata& side_markers, const WriteOptions& options) {
  std::optional<std::string> side;
  if (!side_markers.empty()) side = side_file_text(side_markers);
  write_with_side_file(path, weights, side, options);
}

}  // namespace masque::store
