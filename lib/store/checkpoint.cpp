#include "store/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/in_place.hpp"
#include "base/file/output_folder.hpp"
#include "base/file/undo_journal.hpp"
#include "base/string/edit_distance.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_parts.hpp"
#include "store/tensorflow/bundle_place.hpp"
#include "store/tensorflow/leveldb_table.hpp"

namespace masque::store {

const TensorInfo* Checkpoint::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const OpaqueTensor* Checkpoint::find_opaque(const std::string& name) const {
  const auto found = opaque_by_name_.find(name);
  return found == opaque_by_name_.end() ? nullptr : &opaque_[found->second];
}

const TensorInfo& Checkpoint::get(const std::string& name) const {
  if (const TensorInfo* tensor = find(name)) return *tensor;
  if (const OpaqueTensor* opaque = find_opaque(name)) {
    throw InputError(path_, fmt::format("tensor '{}' is {}: values of this type cannot be read",
                                        escape(name), escape(opaque->type)));
  }
  std::vector<std::string_view> names;
  for (const TensorInfo& tensor : tensors_) names.push_back(tensor.name);
  throw InputError(path_, fmt::format("no tensor '{}'{}", escape(name), did_you_mean(name, names)));
}

void Checkpoint::read(const TensorInfo& tensor, std::uint64_t offset, MutableBytes out) const {
  MASQUE_CHECK(offset <= tensor.bytes() && out.size() <= tensor.bytes() - offset);
  read_tensor(files_[tensor.file].file, tensor, offset, out);
}

std::uint64_t Checkpoint::tensor_bytes() const {
  std::uint64_t sum = 0;
  for (const TensorInfo& tensor : tensors_) sum += tensor.bytes();
  return sum;
}

void Checkpoint::put_decoded(std::vector<TensorInfo> tensors, std::string note) {
  MASQUE_CHECK(!is_decoded() && !note.empty());
  tensors_ = std::move(tensors);
  by_name_.clear();
  for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  MASQUE_CHECK(by_name_.size() == tensors_.size());
  decoded_note_ = std::move(note);
  notes_.push_back(decoded_note_);
}

std::optional<Violation> Checkpoint::add_file(InputFile file, std::string name) {
  auto read = read_weights(file);
  if (auto* violation = std::get_if<Violation>(&read)) return std::move(*violation);
  return add_content(std::move(file), std::move(name), std::get<FileContent>(std::move(read)));
}

std::optional<Violation> Checkpoint::add_content(InputFile file, std::string name,
                                                 FileContent content) {
  for (TensorInfo tensor : content.tensors) {
    tensor.file = files_.size();
    const auto [at, added] = by_name_.emplace(tensor.name, tensors_.size());
    if (!added) {
      return Violation{"index-duplicate-tensor",
                       fmt::format("also in '{}'", escape(files_[tensors_[at->second].file].name)),
                       tensor.name, tensor.begin, file.path()};
    }
    tensors_.push_back(std::move(tensor));
  }
  if (auto broken = add_opaque(content, file)) return broken;
  files_.push_back({std::move(name), std::move(file), std::move(content)});
  for (const std::string& note : files_.back().content.notes) {
    notes_.push_back(fmt::format("{}: {}", escape(files_.back().name), note));
  }
  const FileContent& added = files_.back().content;
  if (added.unknown_fields > 0) {
    const std::uint64_t more = added.unknown_fields - 1;
    notes_.push_back(fmt::format("{}: '{}'{} of the format", escape(files_.back().name),
                                 escape(added.unknown_field),
                                 more == 0 ? std::string(" is not a field")
                                           : fmt::format(" and {} more are not fields", more)));
  }
  return std::nullopt;
}

std::optional<Violation> Checkpoint::add_opaque(const FileContent& content, const InputFile& file) {
  for (OpaqueTensor tensor : content.opaque) {
    tensor.file = files_.size();
    const auto [at, added] = opaque_by_name_.emplace(tensor.name, opaque_.size());
    if (!added || find(tensor.name) != nullptr) {
      return Violation{"index-duplicate-tensor", "also in another file", tensor.name, tensor.begin,
                       file.path()};
    }
    opaque_.push_back(std::move(tensor));
  }
  return std::nullopt;
}

namespace {

std::vector<InputFile> open_shards(const std::string& folder,
                                   const std::vector<std::string>& shards) {
  const Descriptor opened = open_folder(folder);
  std::vector<InputFile> files;
  files.reserve(shards.size());
  for (const std::string& shard : shards)
    files.push_back(InputFile::open_in(opened.get(), shard, join(folder, shard)));
  return files;
}

}  // namespace

std::optional<Violation> Checkpoint::open_index(const std::string& name) {
  const std::string path = join(folder_, name);
  auto parsed = parse_shard_index(InputFile::open(path).read_all(kMaxIndexBytes));
  if (auto* violation = std::get_if<Violation>(&parsed)) {
    violation->file = path;
    return std::move(*violation);
  }
  index_ = std::get<ShardIndex>(std::move(parsed));
  index_name_ = name;
  refuse_unfinished(folder_, index_->shards);
  std::vector<InputFile> files = open_shards(folder_, index_->shards);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (auto broken = add_file(std::move(files[i]), index_->shards[i])) return broken;
  }
  return match_index();
}

std::optional<Violation> Checkpoint::open_bundle(const std::string& name) {
  const std::string path = join(folder_, name);
  const auto in_index = [&](Violation violation) {
    violation.file = path;
    return violation;
  };
  refuse_unfinished(folder_, std::span(&name, 1));
  auto parsed = parse_bundle_index(InputFile::open(path).read_all(kMaxBundleIndexBytes));
  if (auto* violation = std::get_if<Violation>(&parsed)) return in_index(std::move(*violation));
  bundle_ = std::get<BundleIndex>(std::move(parsed));
  index_name_ = name;
  const std::vector<std::string> shards = bundle_shard_names(name, bundle_->shards);
  refuse_unfinished(folder_, shards);
  std::vector<InputFile> files = open_shards(folder_, shards);
  std::vector<std::uint64_t> sizes;
  sizes.reserve(files.size());
  for (const InputFile& file : files) sizes.push_back(file.size());
  BundleFiles again;
  if (spans_shards(*bundle_))
    again = std::make_shared<const std::vector<InputFile>>(open_shards(folder_, shards));
  auto placed = place_bundle(*bundle_, sizes, again);
  if (auto* violation = std::get_if<Violation>(&placed)) return in_index(std::move(*violation));
  auto& contents = std::get<std::vector<FileContent>>(placed);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (auto broken = add_content(std::move(files[i]), shards[i], std::move(contents[i])))
      return broken;
  }
  return std::nullopt;
}

std::optional<Violation> Checkpoint::match_index() {
  const std::string path = join(folder_, index_name_);
  for (const auto& [tensor, shard, offset] : index_->entries) {
    const TensorInfo* found = find(tensor);
    if (found == nullptr || files_[found->file].name != shard) {
      const std::string where = found == nullptr
                                    ? "in no shard"
                                    : fmt::format("in '{}'", escape(files_[found->file].name));
      return Violation{"index-missing-tensor",
                       fmt::format("expected in '{}', found {}", escape(shard), where), tensor,
                       offset, path};
    }
  }
  if (tensors_.size() > index_->entries.size()) {
    notes_.push_back(fmt::format("{} tensors of the shards are not in the index",
                                 tensors_.size() - index_->entries.size()));
  }
  return std::nullopt;
}

namespace {

/// Weights of a folder, in the order in which transformers takes them; each also as shards, by an
/// index next to it.
constexpr std::array<std::string_view, 2> kFolderNames{"model.safetensors", "pytorch_model.bin"};
constexpr std::string_view kIndexSuffix = ".index.json";
/// Otherwise a folder's only file with one of these, the first kind that there is.
constexpr std::array<std::array<std::string_view, 4>, 3> kExtensions{
    {{".safetensors"}, {".bin", ".pt", ".pth", ".npz"}, {".gguf"}}};
/// Files next to weights that hold something else.
constexpr std::array<std::string_view, 5> kNoWeights{"training_args.bin", "optimizer.bin",
                                                     "optimizer.pt", "scheduler.pt", "scaler.pt"};

bool has_extension(const std::string& name, std::span<const std::string_view> extensions) {
  return name.find('/') == std::string::npos &&
         std::ranges::find(kNoWeights, name) == kNoWeights.end() &&
         std::ranges::any_of(extensions, [&](std::string_view extension) {
           return !extension.empty() && name.ends_with(extension);
         });
}

/// What a path that a user names stands for.
struct Place {
  std::string folder;
  std::string name;  ///< of the weights, or of their index
  bool is_folder = false;
  bool is_index = false;
  bool is_bundle = false;  ///< the index is TensorFlow's
  std::vector<std::string> notes;
};

/// A V1 checkpoint of TensorFlow, model.ckpt or model.ckpt-7, says itself why it is not read.
[[noreturn]] void explain_no_weights(const std::string& folder,
                                     const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos || name.find(".ckpt") == std::string::npos) continue;
    const InputFile file = InputFile::open(join(folder, name));
    if (is_table(file)) throw_violation(std::get<Violation>(read_weights(file)));
  }
  throw InputError(folder, "holds no weights, expected model.safetensors or its index");
}

Place find_in_folder(const std::string& folder) {
  Place place{.folder = folder, .name = {}, .is_folder = true, .notes = {}};
  for (const std::string_view known : kFolderNames) {
    place.name = known;
    const std::string index = fmt::format("{}{}", known, kIndexSuffix);
    if (exists(join(folder, place.name))) {
      if (exists(join(folder, index))) place.notes.push_back(fmt::format("'{}' is ignored", index));
      return place;
    }
    if (exists(join(folder, index))) {
      place.name = index;
      place.is_index = true;
      return place;
    }
  }
  const std::vector<std::string> names = list_files(folder);
  for (const auto& extensions : kExtensions) {
    std::vector<std::string> candidates;
    for (const std::string& name : names) {
      if (has_extension(name, extensions)) candidates.push_back(name);
    }
    if (candidates.size() == 1) {
      place.name = candidates[0];
      return place;
    }
    if (auto first = first_gguf_part(candidates)) {
      place.name = *std::move(first);
      return place;
    }
    if (!candidates.empty()) {
      throw InputError(folder, fmt::format("has {} *{} files and no index: give the name of one",
                                           candidates.size(), extensions[0]));
    }
  }
  if (auto index = find_bundle_index(folder, names, place.notes)) {
    place.name = *std::move(index);
    place.is_bundle = true;
    return place;
  }
  explain_no_weights(folder, names);
}

Place find_place(const std::string& path) {
  if (is_folder(path)) return find_in_folder(path);
  if (const auto index = bundle_index_of(path)) {
    return {.folder = folder_of(path),
            .name = base_name(*index),
            .is_folder = true,
            .is_bundle = true,
            .notes = {}};
  }
  const InputFile file = InputFile::open(path);
  std::string start(std::min<std::uint64_t>(file.size(), 8), '\0');
  file.read(0, std::as_writable_bytes(std::span(start)));
  // A safetensors file starts with a length below 2^32: its first byte can be '{' by accident,
  // but then NULs follow, which JSON has not.
  const bool index = start.find('\0') == std::string::npos &&
                     start.find_first_of("{ \t\r\n") == 0 && file.size() <= kMaxIndexBytes &&
                     looks_like_index(file.read_all(kMaxIndexBytes));
  return {.folder = folder_of(path),
          .name = base_name(path),
          .is_folder = index,
          .is_index = index,
          .notes = {}};
}

/// The names of the parts of the split model that `file` is a part of; empty: a whole model. A part
/// whose name does not say so stands alone.
std::vector<std::string> parts_beside(const WeightsFile& file) {
  std::vector<std::string> names = gguf_part_names(file.name, file.content.typed, file.file.path());
  refuse_unfinished(folder_of(file.file.path()), names);
  return names;
}

/// Whether a folder that holds an adapter of PEFT has these weights besides those of the adapter.
bool has_adapter_beside(const Place& place) {
  return !place.name.starts_with("adapter_model.") && exists(join(place.folder, kAdapterConfig));
}

}  // namespace

bool is_opened_before(const std::string& name, const std::string& single) {
  if (name == single) return false;
  for (const std::string_view known : kFolderNames) {
    if (known == single) return false;
    if (name == known || name == fmt::format("{}{}", known, kIndexSuffix)) return true;
  }
  return std::ranges::any_of(
      kExtensions, [&](const auto& extensions) { return has_extension(name, extensions); });
}

Checked<Checkpoint> open_checked(const std::string& path) {
  Place place = find_place(path);
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  checkpoint.folder_ = place.folder;
  checkpoint.is_folder_ = place.is_folder;
  checkpoint.has_adapter_ = has_adapter_beside(place);
  checkpoint.notes_ = std::move(place.notes);
  if (checkpoint.has_adapter_) checkpoint.notes_.emplace_back(kAdapterNote);
  std::optional<Violation> broken;
  if (place.is_index) {
    broken = checkpoint.open_index(place.name);
  } else if (place.is_bundle) {
    broken = checkpoint.open_bundle(place.name);
  } else {
    refuse_unfinished(place.folder, std::span(&place.name, 1));
    const std::string file = place.is_folder ? join(place.folder, place.name) : path;
    broken = checkpoint.add_file(InputFile::open(file), place.name);
    const auto names =
        broken ? std::vector<std::string>() : parts_beside(checkpoint.files_.front());
    if (!names.empty()) {
      // In their order, whichever one was named.
      Checkpoint parts;
      for (std::size_t i = 0; i < names.size() && !broken; ++i) {
        const std::string part = join(place.folder, names[i]);
        if (!exists(part))
          throw InputError(
              part, fmt::format("is not there, expected part {} of {} of a split model", i + 1,
                                names.size()));
        broken = parts.add_file(InputFile::open(part), names[i]);
      }
      if (broken) return *std::move(broken);
      std::vector<GgufPartFile> checked;
      for (const WeightsFile& one : parts.files_)
        checked.push_back({one.file.path(), &one.content});
      check_gguf_parts(checked);
      parts.path_ = path;
      parts.folder_ = place.folder;
      parts.is_folder_ = place.is_folder;
      parts.has_adapter_ = checkpoint.has_adapter_;
      std::ranges::move(checkpoint.notes_, std::back_inserter(parts.notes_));
      return parts;
    }
  }
  if (broken) return *std::move(broken);
  for (const WeightsFile& file : checkpoint.files_) {
    if (const auto part = gguf_part(file.content.typed))
      checkpoint.notes_.push_back(fmt::format(
          "{}: part {} of {} of a split model: the other parts are not read, since its "
          "name does not end with -{:05}-of-{:05}.gguf",
          escape(file.name), part->number + 1, part->count, part->number + 1, part->count));
  }
  return checkpoint;
}

LockedFiles lock_checkpoint(const std::string& path, double wait_seconds) {
  // Files of a bundle by their own names: so an unfinished change of one is spoken of.
  if (bundle_prefix_of(base_name(path)) && exists(path) && !is_folder(path))
    return {folder_of(path), {base_name(path)}, wait_seconds};
  const Place place = find_place(path);
  std::vector<std::string> names{place.name};
  if (place.is_index) {
    const std::string file = join(place.folder, place.name);
    auto index = parse_shard_index(InputFile::open(file).read_all(kMaxIndexBytes));
    if (auto* violation = std::get_if<Violation>(&index)) violation->file = file;
    names = value_or_throw(std::move(index)).shards;
  }
  if (place.is_bundle) {
    const std::string file = join(place.folder, place.name);
    auto index = parse_bundle_index(InputFile::open(file).read_all(kMaxBundleIndexBytes));
    if (auto* violation = std::get_if<Violation>(&index)) violation->file = file;
    // Not the index, which is replaced as a whole.
    names = bundle_shard_names(place.name, value_or_throw(std::move(index)).shards);
  }
  if (place.name.ends_with(".gguf")) {
    const std::string file = join(place.folder, place.name);
    const FileContent content = value_or_throw(read_weights(InputFile::open(file)));
    auto parts = gguf_part_names(place.name, content.typed, file);
    if (!parts.empty()) names = std::move(parts);
  }
  return {place.folder, std::move(names), wait_seconds};
}

Checkpoint open_checkpoint(const std::string& path) { return value_or_throw(open_checked(path)); }

}  // namespace masque::store
