#include "store/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/output_folder.hpp"

namespace masque {

const TensorInfo* Checkpoint::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const TensorInfo& Checkpoint::get(const std::string& name) const {
  if (const TensorInfo* tensor = find(name)) return *tensor;
  std::vector<std::string_view> names;
  for (const TensorInfo& tensor : tensors_) names.push_back(tensor.name);
  const auto near = nearest(name, names);
  throw InputError(path_, fmt::format("no tensor '{}'{}", escape(name),
                                      near ? fmt::format("; did you mean '{}'?", escape(*near))
                                           : std::string()));
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

std::optional<Violation> Checkpoint::add_file(InputFile file, std::string name) {
  auto content = read_weights(file);
  if (auto* violation = std::get_if<Violation>(&content)) return std::move(*violation);
  for (TensorInfo tensor : std::get<FileContent>(content).tensors) {
    tensor.file = files_.size();
    const auto [at, added] = by_name_.emplace(tensor.name, tensors_.size());
    if (!added) {
      return Violation{"index-duplicate-tensor",
                       fmt::format("also in '{}'", escape(files_[tensors_[at->second].file].name)),
                       tensor.name, tensor.begin, file.path()};
    }
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back({std::move(name), std::move(file), std::get<FileContent>(std::move(content))});
  for (const std::string& note : files_.back().content.notes) {
    notes_.push_back(fmt::format("{}: {}", escape(files_.back().name), note));
  }
  const FileContent& added = files_.back().content;
  if (added.unknown_fields > 0) {
    const std::uint64_t more = added.unknown_fields - 1;
    notes_.push_back(
        fmt::format("{}: '{}'{} no field of the format", escape(files_.back().name),
                    escape(added.unknown_field),
                    more == 0 ? std::string(" is") : fmt::format(" and {} more are", more)));
  }
  return std::nullopt;
}

std::optional<Violation> Checkpoint::open_index(const std::string& name) {
  const std::string path = join(folder_, name);
  auto parsed = parse_shard_index(InputFile::open(path).read_all(kMaxIndexBytes));
  if (auto* violation = std::get_if<Violation>(&parsed)) {
    violation->file = path;
    return std::move(*violation);
  }
  index_ = std::get<ShardIndex>(std::move(parsed));
  index_name_ = name;
  is_folder_ = true;
  const Descriptor folder = masque::open_folder(folder_);
  for (const std::string& shard : index_->shards) {
    auto broken = add_file(InputFile::open_in(folder.get(), shard, join(folder_, shard)), shard);
    if (broken) return broken;
  }
  return match_index();
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
/// index beside it.
constexpr std::array<std::string_view, 2> kFolderNames{"model.safetensors", "pytorch_model.bin"};
constexpr std::string_view kIndexSuffix = ".index.json";
/// Otherwise a folder's only file with one of these, the first kind that there is.
constexpr std::array<std::array<std::string_view, 4>, 2> kExtensions{
    {{".safetensors"}, {".bin", ".pt", ".pth", ".npz"}}};
/// Files beside weights that hold something else.
constexpr std::array<std::string_view, 5> kNoWeights{"training_args.bin", "optimizer.bin",
                                                     "optimizer.pt", "scheduler.pt", "scaler.pt"};

bool has_extension(const std::string& name, std::span<const std::string_view> extensions) {
  return name.find('/') == std::string::npos &&
         std::ranges::find(kNoWeights, name) == kNoWeights.end() &&
         std::ranges::any_of(extensions, [&](std::string_view extension) {
           return !extension.empty() && name.ends_with(extension);
         });
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

std::optional<Violation> Checkpoint::open_folder_weights() {
  is_folder_ = true;
  for (const std::string_view known : kFolderNames) {
    const std::string single(known);
    const std::string index = fmt::format("{}{}", known, kIndexSuffix);
    if (exists(join(folder_, single))) {
      if (exists(join(folder_, index))) notes_.push_back(fmt::format("'{}' is not used", index));
      return add_file(InputFile::open(join(folder_, single)), single);
    }
    if (exists(join(folder_, index))) return open_index(index);
  }
  const std::vector<std::string> names = list_files(folder_);
  for (const auto& extensions : kExtensions) {
    std::vector<std::string> candidates;
    for (const std::string& name : names) {
      if (has_extension(name, extensions)) candidates.push_back(name);
    }
    if (candidates.size() == 1)
      return add_file(InputFile::open(join(folder_, candidates[0])), candidates[0]);
    if (!candidates.empty()) {
      throw InputError(path_, fmt::format("holds {} *{} files and no index: name one",
                                          candidates.size(), extensions[0]));
    }
  }
  throw InputError(path_, "holds no weights, expected model.safetensors or its index");
}

Checked<Checkpoint> open_checked(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  std::optional<Violation> broken;
  if (is_folder(path)) {
    checkpoint.folder_ = path;
    broken = checkpoint.open_folder_weights();
  } else {
    checkpoint.folder_ = folder_of(path);
    InputFile file = InputFile::open(path);
    std::string start(std::min<std::uint64_t>(file.size(), 8), '\0');
    file.read(0, std::as_writable_bytes(std::span(start)));
    // A safetensors file starts with a length below 2^32: its first byte can be '{' by accident,
    // but then NULs follow, which JSON has not.
    if (start.find('\0') == std::string::npos && start.find_first_of("{ \t\r\n") == 0 &&
        file.size() <= kMaxIndexBytes && looks_like_index(file.read_all(kMaxIndexBytes))) {
      broken = checkpoint.open_index(base_name(path));
    } else {
      broken = checkpoint.add_file(std::move(file), base_name(path));
    }
  }
  if (broken) return *std::move(broken);
  return checkpoint;
}

Checkpoint open_checkpoint(const std::string& path) { return value_or_throw(open_checked(path)); }

}  // namespace masque
