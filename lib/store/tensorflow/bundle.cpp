#include "store/tensorflow/bundle.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "store/tensorflow/bundle_slices.hpp"
#include "store/tensorflow/bundle_sums.hpp"
#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

/// Whether the value of the empty key is that of a V1 checkpoint: there field 1 is a message.
bool is_v1(std::string_view message) {
  WireReader reader(message);
  const auto field = reader.next();
  return field && field->is_bytes(1);
}

bool is_slice(const BundleEntry& entry) { return entry.name.starts_with('\0'); }

/// Turns entries into what data files hold.
class Placing {
 public:
  Placing(const BundleIndex& index, std::span<const std::uint64_t> shard_bytes,
          const BundleFiles& files)
      : index_(index),
        shard_bytes_(shard_bytes),
        files_(files),
        contents_(shard_bytes.size()),
        stored_(shard_bytes.size()) {}

  Checked<std::vector<FileContent>> run() {
    for (const BundleEntry& entry : index_.entries) {
      if (is_slice(entry)) slices_.emplace(entry.name, &entry);
    }
    for (const BundleEntry& entry : index_.entries) {
      if (is_slice(entry)) continue;
      auto broken = entry.slices.empty() ? place(entry) : place_slices(entry);
      if (broken) return *std::move(broken);
    }
    if (!slices_.empty()) {
      const auto unused = std::ranges::find_if(
          index_.entries, [&](const auto& entry) { return slices_.contains(entry.name); });
      return Violation{"bundle-slice", "a slice that belongs to no tensor", "", unused->at};
    }
    for (std::size_t shard = 0; shard < contents_.size(); ++shard) {
      if (auto broken = finish(shard)) return *std::move(broken);
    }
    return std::move(contents_);
  }

 private:
  std::optional<Violation> place(const BundleEntry& entry) {
    if (auto broken = store(entry, entry.name)) return broken;
    FileContent& content = contents_[entry.shard];
    const std::uint64_t end = entry.offset + entry.size;
    if (const auto dtype = dtype_of_tensorflow(entry.type)) {
      content.tensors.push_back({.name = entry.name,
                                 .dtype = *dtype,
                                 .shape = entry.shape,
                                 .begin = entry.offset,
                                 .end = end});
    } else {
      content.opaque.push_back({.name = entry.name,
                                .type = tensorflow_type_name(entry.type),
                                .shape = entry.shape,
                                .begin = entry.offset,
                                .end = end,
                                .checksum = entry.crc});
    }
    return std::nullopt;
  }

  /// Checks and notes the bytes of an entry, which are those of the tensor `name` or a part.
  std::optional<Violation> store(const BundleEntry& entry, const std::string& name) {
    if (entry.shard >= shard_bytes_.size()) {
      return Violation{"bundle-shard",
                       fmt::format("in data file {} of {}", entry.shard, shard_bytes_.size()), name,
                       entry.at};
    }
    const std::uint64_t end = entry.offset + entry.size;  // both are below 2^63
    if (end > shard_bytes_[entry.shard]) {
      return Violation{"bundle-bounds",
                       fmt::format("bytes {} to {} of data file {}, which has {}", entry.offset,
                                   end, entry.shard, shard_bytes_[entry.shard]),
                       name, entry.at};
    }
    const auto bytes = tensorflow_bytes(entry.type, entry.shape, entry.size);
    if (!bytes) {
      return Violation{"shape-overflow",
                       fmt::format("shape {} has more than 2^64 bytes", shape_text(entry.shape)),
                       name, entry.at};
    }
    if (*bytes != entry.size) {
      const auto dtype = dtype_of_tensorflow(entry.type);
      const std::string type =
          dtype ? std::string(dtype_name(*dtype)) : tensorflow_type_name(entry.type);
      return Violation{"size-mismatch",
                       fmt::format("{}{} needs {} bytes, found {}", type, shape_text(entry.shape),
                                   *bytes, entry.size),
                       name, entry.at};
    }
    BundleEntry& stored = stored_[entry.shard].emplace_back(entry);
    stored.name = name;
    return std::nullopt;
  }

  std::optional<Violation> place_slices(const BundleEntry& entry) {
    auto built = grid_of_slices(entry, [&](const std::string& key) {
      const auto found = slices_.find(key);
      return found == slices_.end() ? nullptr : found->second;
    });
    if (auto* broken = std::get_if<Violation>(&built)) return std::move(*broken);
    auto& [grid, cells] = std::get<SlicedEntry>(built);
    for (const BundleEntry* cell : cells) {
      if (auto broken = store(*cell, entry.name)) return broken;
    }
    for (const BundleEntry* cell : cells) slices_.erase(cell->name);
    const DType dtype = *dtype_of_tensorflow(entry.type);
    const BundleEntry& first = *cells.front();
    const std::uint64_t bytes = *byte_count(dtype, entry.shape);
    contents_[first.shard].tensors.push_back(
        {.name = entry.name,
         .dtype = dtype,
         .shape = entry.shape,
         .begin = first.offset,
         .end = first.offset + bytes,
         .reader = sliced_reader(std::move(grid), first.shard, files_)});
    return std::nullopt;
  }

  /// Data order, overlaps and gaps of one data file.
  std::optional<Violation> finish(std::size_t shard) {
    std::vector<BundleEntry>& stored = stored_[shard];
    std::ranges::stable_sort(stored, {}, [](const BundleEntry& entry) {
      return std::pair(entry.offset, entry.offset + entry.size);
    });
    std::uint64_t end = 0;
    std::uint64_t unused = 0;
    for (const BundleEntry& entry : stored) {
      if (entry.size == 0) continue;
      if (entry.offset < end) {
        return Violation{"overlap", fmt::format("begins at byte {}, before {}", entry.offset, end),
                         entry.name, entry.at};
      }
      unused += entry.offset - end;
      end = entry.offset + entry.size;
    }
    unused += shard_bytes_[shard] - end;
    FileContent& content = contents_[shard];
    if (unused > 0) content.notes.push_back(fmt::format("{} bytes belong to no tensor", unused));
    const auto place_of = [](const auto& tensor) { return std::pair(tensor.begin, tensor.end); };
    std::ranges::stable_sort(content.tensors, {}, place_of);
    std::ranges::stable_sort(content.opaque, {}, place_of);
    content.writer = "tensorflow";
    content.check_sums = [sums = std::move(stored)](const InputFile& file) {
      return check_bundle_sums(file, sums);
    };
    return std::nullopt;
  }

  const BundleIndex& index_;
  std::span<const std::uint64_t> shard_bytes_;
  const BundleFiles& files_;
  std::vector<FileContent> contents_;
  std::vector<std::vector<BundleEntry>> stored_;  // by data file
  std::unordered_map<std::string_view, const BundleEntry*> slices_;
};

}  // namespace

Checked<BundleIndex> parse_bundle_index(std::string text, TableSums sums) {
  auto table = read_leveldb_table(as_bytes(text), sums);
  if (auto* violation = std::get_if<Violation>(&table)) return std::move(*violation);
  auto& rows = std::get<std::vector<TableEntry>>(table);
  if (rows.empty() || !rows.front().key.empty())
    return Violation{"bundle-header", "the first key is not the empty key of the header", "", 0};
  if (is_v1(rows.front().value)) {
    return Violation{"unsupported-format",
                     "a TensorFlow V1 checkpoint: save it again with TensorFlow 1.0 or newer, "
                     "whose Saver writes V2",
                     "", rows.front().offset};
  }
  auto header = read_bundle_header(rows.front().value, rows.front().offset);
  if (auto* violation = std::get_if<Violation>(&header)) return std::move(*violation);
  BundleIndex index;
  index.shards = std::get<BundleHeader>(header).shards;
  index.entries.reserve(rows.size() - 1);
  for (TableEntry& row : std::span(rows).subspan(1)) {
    if (!row.key.starts_with('\0') && !valid_utf8(row.key))
      return Violation{"not-utf8", "a name that is not UTF-8", "", row.offset};
    auto entry = read_bundle_entry(std::move(row.key), row.value, row.offset);
    if (auto* violation = std::get_if<Violation>(&entry)) return std::move(*violation);
    index.entries.push_back(std::get<BundleEntry>(std::move(entry)));
  }
  index.text = std::move(text);
  return index;
}

bool spans_shards(const BundleIndex& index) {
  return index.shards > 1 && std::ranges::any_of(index.entries, is_slice);
}

Checked<std::vector<FileContent>> place_bundle(const BundleIndex& index,
                                               std::span<const std::uint64_t> shard_bytes,
                                               const BundleFiles& files) {
  return Placing(index, shard_bytes, files).run();
}

}  // namespace masque::store
