// Where an edit's markers are kept.
#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/json.hpp"
#include "surgery/edit/checkpoint_edit.hpp"

namespace masque::surgery {

namespace {

bool has_metadata(const store::WeightsFile& file) {
  return store::weights_writer(file.content.writer).has_metadata;
}

bool is_empty_object(const std::string& text) {
  return parse_json_file(text, "FILE.masque.json").members.empty();
}

}  // namespace

std::map<std::string, std::string> CheckpointEdit::marker_texts(bool in_place) const {
  std::map<std::string, std::string> out;
  // transformers keeps members of a config that it does not know.
  const std::string config_file = store::config_name(checkpoint_->folder());
  for (const Marker& marker : markers_) {
    const store::WeightsFile& file = checkpoint_->files()[marker.file];
    const std::string side = store::side_path(store::weights_name(*checkpoint_, file));
    const bool config = checkpoint_->is_folder() && file_text(config_file).has_value();
    const bool outside = marker.value && (in_place || !has_metadata(file));
    const std::string place = config ? config_file : side;
    for (const std::string& name : {config_file, side}) {
      if (name == config_file && !config) continue;
      const auto edited = out.find(name);
      const auto before = edited != out.end() ? std::optional(edited->second) : file_text(name);
      const bool here = outside && name == place;
      if (!before && !here) continue;
      std::string text = before.value_or("{}\n");
      text = here ? set_json_member(text, {marker.key}, quote_json(*marker.value))
                  : erase_json_member(text, {marker.key});
      if (text != before) out.insert_or_assign(name, std::move(text));
    }
  }
  return out;
}

std::optional<std::string> CheckpointEdit::side_text() const {
  if (checkpoint_->is_folder()) return std::nullopt;
  const std::string name = store::side_path(checkpoint_->files().front().name);
  const auto texts = marker_texts(false);
  const auto edited = texts.find(name);
  auto text = edited != texts.end() ? std::optional(edited->second) : file_text(name);
  if (text && is_empty_object(*text)) text.reset();
  return text;
}

std::map<std::string, std::string> CheckpointEdit::texts_in_place() const {
  std::map<std::string, std::string> out = marker_texts(true);
  for (const auto& [name, text] : files_) {
    if (text) out.emplace(name, *text);
  }
  return out;
}

std::optional<std::string> CheckpointEdit::against_shared_files() const {
  if (store::other_bundle_files(*checkpoint_).empty()) return std::nullopt;
  const std::string own = store::side_path(checkpoint_->index_name());
  for (const auto& [name, text] : texts_in_place()) {
    if (name == own) continue;
    return fmt::format("'{}' would change, but other TensorFlow checkpoints use it too",
                       escape(name));
  }
  return std::nullopt;
}

std::vector<CheckpointEdit::ErasedMetadata> CheckpointEdit::erased_metadata() const {
  std::vector<ErasedMetadata> out;
  for (const Marker& marker : markers_) {
    const store::Metadata& metadata = checkpoint_->files()[marker.file].content.metadata;
    if (store::find_metadata(metadata, marker.key) != nullptr)
      out.push_back({marker.file, marker.key});
  }
  return out;
}

}  // namespace masque::surgery
