#include "surgery/edit/checkpoint_edit.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_folder.hpp"
#include "base/json/json.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensorflow/tf_names.hpp"
#include "text/open/google_folder.hpp"

namespace masque::surgery {

namespace {

bool has_metadata(const store::WeightsFile& file) {
  return store::weights_writer(file.content.writer).has_metadata;
}

bool is_empty_object(const std::string& text) {
  return parse_json_file(text, "FILE.masque.json").members.empty();
}

constexpr std::uint64_t kMostFileBytes = 256 << 20;

/// Of what TensorFlow runs, next to "PREFIX.index".
std::string graph_name(const std::string& index) {
  return index.substr(0, index.rfind('.')) + ".meta";
}

unsigned mode_of(const std::string& folder, const std::string& name) {
  const std::string path = join(folder, name);
  return exists(path) ? InputFile::open(path).mode() & 0777U : 0644U;
}

}  // namespace

CheckpointEdit::CheckpointEdit(const store::Checkpoint& checkpoint) : checkpoint_(&checkpoint) {
  // A part alone may keep its number of tensors and its rows.
  if (checkpoint.files().size() > 1) store::check_one_gguf(checkpoint);
  if (!store::holds_two_models(checkpoint)) return;
  throw InputError(checkpoint.path(),
                   fmt::format("holds two models that share a vocabulary, and only one would "
                               "change: 'ckpt convert {} hf' extracts one of them",
                               field("names")));
}

void CheckpointEdit::replace(const std::string& name, Shape shape, store::Source source) {
  store::TensorInfo info = checkpoint_->get(name);
  info.shape = std::move(shape);
  info.reader = nullptr;
  info.alias_of.clear();
  replaced_.insert_or_assign(name, store::OutputTensor{std::move(info), std::move(source)});
}

void CheckpointEdit::add(store::OutputTensor tensor, const std::string& neighbour) {
  MASQUE_CHECK(checkpoint_->find(neighbour) != nullptr);
  if (checkpoint_->find(tensor.info.name) != nullptr ||
      checkpoint_->find_opaque(tensor.info.name) != nullptr) {
    throw InputError(checkpoint_->path(),
                     fmt::format("tensor '{}' exists already", escape(tensor.info.name)));
  }
  added_.push_back({std::move(tensor), neighbour});
}

void CheckpointEdit::remove(const std::string& name) {
  removed_[checkpoint_->get(name).name] = true;
}

void CheckpointEdit::set_marker(const std::string& neighbour, std::string_view key,
                                std::optional<std::string> value) {
  markers_.push_back({checkpoint_->get(neighbour).file, std::string(key), std::move(value)});
}

void CheckpointEdit::set_typed(store::TypedValue value) {
  MASQUE_CHECK(value.type != "STRING");
  typed_.insert_or_assign(value.key, std::move(value));
}

void CheckpointEdit::set_file(const std::string& name, std::string text) {
  MASQUE_CHECK(checkpoint_->is_folder());
  files_.insert_or_assign(name, std::move(text));
}

void CheckpointEdit::set_weights(store::OutputWeights weights) {
  drop_file(weights.name);
  other_weights_.push_back(std::move(weights));
}

void CheckpointEdit::drop_file(const std::string& name) {
  files_.insert_or_assign(name, std::nullopt);
}

bool CheckpointEdit::set_config(std::string_view name, const std::string& json) {
  const std::string file = store::config_name(checkpoint_->folder());
  const auto text = checkpoint_->is_folder() ? file_text(file) : std::nullopt;
  if (!text) return false;
  set_file(file, set_json_member(*text, {std::string(name)}, json));
  return true;
}

std::optional<std::string> CheckpointEdit::file_text(const std::string& name) const {
  if (const auto found = files_.find(name); found != files_.end()) return found->second;
  const std::string path = join(checkpoint_->folder(), name);
  if (exists(path)) return InputFile::open(path).read_all(kMostFileBytes);
  return name == "tokenizer_config.json" ? text::tokenizer_config_by_name(checkpoint_->folder())
                                         : std::nullopt;
}

bool CheckpointEdit::drops(const std::string& name) const {
  const auto found = files_.find(name);
  return found != files_.end() && !found->second;
}

std::vector<std::string> CheckpointEdit::replaced() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : replaced_) names.push_back(name);
  return names;
}

std::vector<std::string> CheckpointEdit::added() const {
  std::vector<std::string> names;
  names.reserve(added_.size());
  for (const Addition& addition : added_) names.push_back(addition.tensor.info.name);
  return names;
}

std::vector<store::OutputTensor> CheckpointEdit::added_tensors() const {
  std::vector<store::OutputTensor> tensors;
  tensors.reserve(added_.size());
  for (const Addition& addition : added_) tensors.push_back(addition.tensor);
  return tensors;
}

std::vector<std::string> CheckpointEdit::edited_files() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : files_) {
    if (text) names.push_back(name);
  }
  if (checkpoint_->is_folder()) {
    for (const auto& [name, text] : marker_texts(false)) {
      if (!files_.contains(name)) names.push_back(name);
    }
  }
  if (checkpoint_->index() && edited_index() != checkpoint_->index()->text)
    names.push_back(checkpoint_->index_name());
  std::ranges::sort(names);
  return names;
}

const store::OutputTensor* CheckpointEdit::replacement(const std::string& name) const {
  const auto found = replaced_.find(name);
  return found == replaced_.end() ? nullptr : &found->second;
}

bool CheckpointEdit::changes(const store::WeightsFile& file) const {
  const std::size_t number = static_cast<std::size_t>(&file - checkpoint_->files().data());
  const auto touched = [&](const store::TensorInfo& tensor) {
    return replaced_.contains(tensor.name) || removed_.contains(tensor.name);
  };
  return std::ranges::any_of(file.content.tensors, touched) ||
         std::ranges::any_of(file.content.typed,
                             [&](const store::TypedValue& v) { return typed_.contains(v.key); }) ||
         (store::weights_writer(file.content.writer).has_metadata &&
          std::ranges::any_of(markers_, [&](const Marker& m) { return m.file == number; })) ||
         std::ranges::any_of(added_, [&](const Addition& addition) {
           return checkpoint_->get(addition.neighbour).file == number;
         });
}

store::OutputWeights CheckpointEdit::changed(const store::WeightsFile& file) {
  store::OutputWeights weights = store::copy_of(file);
  if (!changes(file)) weights.metadata = file.content.metadata;
  const auto number = static_cast<std::size_t>(&file - checkpoint_->files().data());
  return changed(std::move(weights), [number](std::size_t other) { return other == number; });
}

store::OutputWeights CheckpointEdit::changed(store::OutputWeights weights,
                                             const std::function<bool(std::size_t file)>& holds) {
  std::erase_if(weights.tensors, [&](const store::OutputTensor& tensor) {
    return removed_.contains(tensor.info.name);
  });
  // What was stored once stays one among those that stay, and, if the writer finds their sources
  // to be the same, among those that change.
  std::map<std::pair<std::string, bool>, std::string> first;
  for (store::OutputTensor& tensor : weights.tensors) {
    const std::string name = tensor.info.name;
    const std::string root = tensor.info.alias_of.empty() ? name : tensor.info.alias_of;
    const auto found = replaced_.find(name);
    if (found != replaced_.end()) tensor = found->second;
    const auto [twin, added] = first.emplace(std::pair(root, found != replaced_.end()), name);
    tensor.info.alias_of = added ? std::string() : twin->second;
  }
  for (store::TypedValue& value : weights.typed) {
    if (const auto found = typed_.find(value.key); found != typed_.end()) value = found->second;
  }
  for (const Marker& marker : markers_) {
    if (!holds(marker.file)) continue;
    if (marker.value) {
      masque::store::set_metadata(weights.metadata, marker.key, *marker.value);
    } else {
      store::erase_metadata(weights.metadata, marker.key);
    }
  }
  std::vector<store::InsertedTensor> inserted;
  for (Addition& addition : added_) {
    if (holds(checkpoint_->get(addition.neighbour).file))
      inserted.push_back({std::move(addition.tensor), addition.neighbour});
  }
  store::insert_tensors(weights, std::move(inserted));
  return weights;
}

std::string CheckpointEdit::edited_index() const {
  const store::ShardIndex& index = *checkpoint_->index();
  std::string text = index.text;
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  const auto count = [&](const store::TensorInfo& info, std::int64_t sign) {
    bytes += sign * static_cast<std::int64_t>(byte_count(info.dtype, info.shape).value());
    elements += sign * static_cast<std::int64_t>(element_count(info.shape).value());
  };
  for (const auto& [name, tensor] : replaced_) {
    count(checkpoint_->get(name), -1);
    count(tensor.info, 1);
  }
  for (const auto& [name, gone] : removed_) {
    count(checkpoint_->get(name), -1);
    text = erase_json_member(text, {"weight_map", name});
  }
  for (const auto& [tensor, neighbour] : added_) {
    const std::string& shard = checkpoint_->files()[checkpoint_->get(neighbour).file].name;
    text = set_json_member(text, {"weight_map", tensor.info.name}, quote_json(shard));
    count(tensor.info, 1);
  }
  const JsonValue root = parse_json_file(text, checkpoint_->index_name());
  const JsonValue* metadata = root.find("metadata");
  for (const auto& [name, more] :
       {std::pair{"total_size", bytes}, {"total_parameters", elements}}) {
    const JsonValue* value = metadata == nullptr ? nullptr : metadata->find(name);
    const auto before = value == nullptr ? std::nullopt : value->integer();
    if (!before || more == 0) continue;
    const std::uint64_t now = *before + static_cast<std::uint64_t>(more);
    const bool wrong = more > 0 ? now < *before : now > *before;  // it was before: it stays
    if (!wrong) text = set_json_member(text, {"metadata", name}, fmt::format("{}", now));
  }
  return text;
}

void CheckpointEdit::add_bundle(Output& out, std::vector<std::string>& replaced) {
  const auto touched = [&](const store::WeightsFile& file) { return changes(file); };
  if (std::ranges::none_of(checkpoint_->files(), touched)) return;
  out.weights.push_back(
      changed(store::copy_of_bundle(*checkpoint_), [](std::size_t) { return true; }));
  replaced = store::weight_files(*checkpoint_);
  const std::string graph = graph_name(checkpoint_->index_name());
  if (!keeps_layout() && exists(join(checkpoint_->folder(), graph)))
    out.notes.push_back(
        fmt::format("'{}' is copied unchanged: its graph has the old shapes", escape(graph)));
}

CheckpointEdit::Output CheckpointEdit::output(bool follow_links) {
  Output out;
  std::vector<std::string> replaced;
  if (checkpoint_->index()) {
    std::string text = edited_index();
    if (text != checkpoint_->index()->text) set_file(checkpoint_->index_name(), std::move(text));
  }
  if (checkpoint_->is_folder()) {
    for (auto& [name, text] : marker_texts(false)) set_file(name, std::move(text));
  }
  if (checkpoint_->bundle()) {
    add_bundle(out, replaced);
  } else {
    for (const store::WeightsFile& file : checkpoint_->files()) {
      if (checkpoint_->is_folder() && !changes(file)) continue;
      out.weights.push_back(changed(file));
      replaced.push_back(file.name);
    }
  }
  if (!checkpoint_->is_folder()) return out;
  std::ranges::move(other_weights_, std::back_inserter(out.weights));
  const std::string& folder = checkpoint_->folder();
  for (auto& [name, text] : files_) {
    replaced.push_back(name);
    if (!text) continue;
    const std::uint64_t size = text->size();
    // A copy: edited_files() and file_text() still look at it, to verify what was written.
    out.extras.push_back({name, store::Literal{*text}, size, mode_of(folder, name)});
  }
  const std::vector<std::string> others = store::other_bundle_files(*checkpoint_);
  replaced.insert(replaced.end(), others.begin(), others.end());
  for (std::string& note : store::other_bundle_notes(others)) out.notes.push_back(std::move(note));
  for (store::OutputExtra& extra :
       store::other_files(folder, replaced, out.opened, follow_links, out.notes))
    out.extras.push_back(std::move(extra));
  return out;
}

// Where an edit's markers are kept.

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

std::vector<std::string> write_edit(CheckpointEdit& edit, const std::string& out,
                                    store::WriteOptions options) {
  const store::Checkpoint& checkpoint = edit.checkpoint();
  options.input = checkpoint.path();
  if (checkpoint.is_folder()) store::check_folder_output(out);
  const auto side = edit.side_text();
  CheckpointEdit::Output output = edit.output(options.follow_links);
  if (checkpoint.is_folder()) {
    store::write_checkpoint_folder(out, output.weights, output.extras, options);
    return output.notes;
  }
  store::write_with_side_file(out, output.weights.front(), side, options);
  return output.notes;
}

namespace {

constexpr std::array<std::string_view, 10> kEndings{".safetensors", ".bin",  ".pt", ".pth",
                                                    ".h5",          ".onnx", ".ot", ".msgpack",
                                                    ".ckpt.index",  ".gguf"};

// What lm-train leaves in a folder.
constexpr std::string_view kTrainingState = "training.safetensors";

}  // namespace

std::vector<std::string> stale_copies(const store::Checkpoint& checkpoint) {
  std::vector<std::string> stale;
  if (!checkpoint.is_folder()) return stale;
  std::vector<std::string> own = store::weight_files(checkpoint);
  const std::vector<std::string> others = store::other_bundle_files(checkpoint);
  own.insert(own.end(), others.begin(), others.end());
  for (const std::string& name : list_files(checkpoint.folder())) {
    const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
    if (std::ranges::any_of(kEndings, ends) && std::ranges::find(own, name) == own.end())
      stale.push_back(name);
  }
  return stale;
}

std::string stale_copy_note(const std::string& name, std::string_view what) {
  const std::string note = fmt::format("'{}' {} unchanged: ", escape(name), what);
  if (name != kTrainingState) return note + "it may hold the old weights";
  return note + fmt::format(
                    "it has the old weights, which lm-train {} refuses, and the record of "
                    "the training, which mlm-correct reads",
                    field("resume"));
}

}  // namespace masque::surgery
