#include "store/tensorflow/bundle.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/digest/crc32c.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "store/tensorflow/bundle_entry.hpp"
#include "store/tensorflow/leveldb_table.hpp"
#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

// Tensors that lie in slices: cells of a grid, each row-major in a place of its own.

/// Where the bytes of a cell begin.
struct CellPlace {
  std::size_t file = 0;     ///< number of the data file
  std::uint64_t begin = 0;  ///< byte in it
};

/// A tensor cut into cells. The product of the numbers of cuts is the number of cells.
struct SliceGrid {
  Shape shape;                      ///< of the whole: elements in each dimension
  std::uint64_t element_bytes = 1;  ///< bytes of an element
  std::vector<Shape> cuts;          ///< for each dimension: where cells begin, ascending from 0
  std::vector<CellPlace> cells;     ///< row-major
};

class SlicedReader : public TensorReader {
 public:
  SlicedReader(SliceGrid grid, std::size_t own_file, BundleFiles files)
      : grid_(std::move(grid)), own_file_(own_file), files_(std::move(files)) {
    for (std::size_t i = 0; i < grid_.cuts.size(); ++i) {
      if (grid_.cuts[i].size() > 1) axes_ = i + 1;
    }
    inner_bytes_ = grid_.element_bytes;
    for (std::size_t i = axes_; i < grid_.shape.size(); ++i) inner_bytes_ *= grid_.shape[i];
  }

  void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const override {
    while (!out.empty()) {
      const Run run = run_at(offset);
      const MutableBytes part = out.first(std::min<std::uint64_t>(out.size(), run.bytes));
      MASQUE_CHECK(run.place.file == own_file_ || files_ != nullptr);
      const InputFile& from = run.place.file == own_file_ ? file : (*files_)[run.place.file];
      from.read(run.place.begin, part);
      offset += part.size();
      out = out.subspan(part.size());
    }
  }

 private:
  /// Bytes that lie in order both in the tensor and in a cell.
  struct Run {
    CellPlace place;
    std::uint64_t bytes = 0;
  };

  Run run_at(std::uint64_t offset) const {
    std::uint64_t rest = offset / inner_bytes_;
    Shape position(axes_);
    for (std::size_t i = axes_; i-- > 0;) {
      position[i] = rest % grid_.shape[i];
      rest /= grid_.shape[i];
    }
    std::size_t cell = 0;
    std::uint64_t in_cell = 0;
    std::uint64_t left = 1;
    for (std::size_t i = 0; i < axes_; ++i) {
      const Shape& cuts = grid_.cuts[i];
      const auto next = std::ranges::upper_bound(cuts, position[i]);
      const std::uint64_t begin = *std::prev(next);
      const std::uint64_t end = next == cuts.end() ? grid_.shape[i] : *next;
      cell = cell * cuts.size() + static_cast<std::size_t>(std::prev(next) - cuts.begin());
      in_cell = in_cell * (end - begin) + position[i] - begin;
      left = end - position[i];
    }
    const std::uint64_t skip = offset % inner_bytes_;
    CellPlace place = grid_.cells[cell];
    place.begin += in_cell * inner_bytes_ + skip;
    return {place, left * inner_bytes_ - skip};
  }

  SliceGrid grid_;
  std::size_t own_file_;
  BundleFiles files_;
  std::size_t axes_ = 0;  // dimensions up to the last one that is cut
  std::uint64_t inner_bytes_ = 1;
};

/// Makes a reader that gathers the cells of `grid`. Of those in `own_file` the file is what the
/// reader is given; for others `files` must be there (a MASQUE_CHECK of the reader). Each stretch
/// of a cell that lies in order in the tensor is one read: whole cells where only the first
/// dimension is cut.
std::shared_ptr<const TensorReader> sliced_reader(SliceGrid grid, std::size_t own_file,
                                                  BundleFiles files) {
  return std::make_shared<SlicedReader>(std::move(grid), own_file, std::move(files));
}

// The checksums of a bundle's tensors, which its index has.

constexpr std::uint64_t kVariant = 21;
constexpr std::uint64_t kResource = 20;

std::uint32_t little_endian_crc(std::uint64_t value, std::size_t bytes, std::uint32_t running) {
  std::array<std::byte, 8> text{};
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<std::byte>(value >> (8 * i));
  return crc32c(Bytes(text).first(bytes), running);
}

/// The bytes of one tensor, in order.
class TensorBytes {
 public:
  TensorBytes(const InputFile& file, std::uint64_t begin, std::uint64_t size)
      : file_(file), at_(begin), left_(size), buffer_(std::min(size, kBuffer)) {}

  std::uint64_t left() const { return left_ + (filled_ - used_); }

  /// The sum of all that is left, running on.
  std::uint32_t crc_of_rest(std::uint32_t running) {
    for (; left() > 0; used_ = filled_) {
      if (used_ == filled_) fill();
      running = crc32c(Bytes(buffer_).subspan(used_, filled_ - used_), running);
    }
    return running;
  }

  /// The next byte; there must be one.
  std::byte next() {
    if (used_ == filled_) fill();
    return buffer_[used_++];
  }

 private:
  static constexpr std::uint64_t kBuffer = 1 << 20;

  void fill() {
    throw_if_interrupted();
    filled_ = std::min<std::uint64_t>(buffer_.size(), left_);
    used_ = 0;
    file_.read(at_, MutableBytes(buffer_).first(filled_));
    at_ += filled_;
    left_ -= filled_;
  }

  const InputFile& file_;
  std::uint64_t at_;
  std::uint64_t left_;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  std::vector<std::byte> buffer_;
};

/// A number as protobuf writes it; nothing if none is left.
std::optional<std::uint64_t> next_varint(TensorBytes& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && bytes.left() > 0; shift += 7) {
    const auto byte = std::to_integer<unsigned>(bytes.next());
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// The sum of strings: lengths, their own sum, the characters. Nothing if they are not laid out so.
std::optional<std::uint32_t> crc_of_strings(TensorBytes& bytes, std::uint64_t count) {
  std::uint32_t crc = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = next_varint(bytes);
    if (!length) return std::nullopt;
    const bool small = *length <= std::numeric_limits<std::uint32_t>::max();
    crc = little_endian_crc(*length, small ? 4 : 8, crc);
  }
  if (bytes.left() < 4) return std::nullopt;
  std::array<std::byte, 4> own{};
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i] = bytes.next();
    stored |= std::to_integer<std::uint32_t>(own[i]) << (8 * i);
  }
  if (stored != masked_crc32c(crc)) return std::nullopt;
  return bytes.crc_of_rest(crc32c(own, crc));
}

/// Compares the tensors of the data file `shard` with the CRC-32C of their `entries`: the first
/// that differs breaks the rule "bundle-crc". Of strings the sum is over their lengths as numbers,
/// too; VARIANT and RESOURCE are not compared. Reads each tensor once, 1 MiB at a time. Throws
/// InputError and Interrupted.
std::optional<Violation> check_bundle_sums(const InputFile& shard,
                                           const std::vector<BundleEntry>& entries) {
  for (const BundleEntry& entry : entries) {
    if (entry.type == kVariant || entry.type == kResource) continue;
    TensorBytes bytes(shard, entry.offset, entry.size);
    const auto crc = entry.type == kTensorflowString
                         ? crc_of_strings(bytes, element_count(entry.shape).value_or(0))
                         : std::optional(bytes.crc_of_rest(0));
    if (crc && masked_crc32c(*crc) == entry.crc) continue;
    return Violation{"bundle-crc", fmt::format("{} bytes differ from their CRC-32C", entry.size),
                     entry.name, entry.offset, shard.path()};
  }
  return std::nullopt;
}

// Partitioned variables of a bundle: the entry of the whole names its slices, which have entries of
// their own.

/// A tensor in slices: a grid, and the entry of each cell, row-major.
struct SlicedEntry {
  SliceGrid grid;                         ///< where the cells lie
  std::vector<const BundleEntry*> cells;  ///< entries that `find` gave; as many as grid.cells
};

class GridBuilder {
 public:
  explicit GridBuilder(const BundleEntry& whole) : whole_(whole) {}

  Checked<SlicedEntry> build(
      const std::function<const BundleEntry*(const std::string& key)>& find) {
    const auto dtype = dtype_of_tensorflow(whole_.type);
    if (!dtype) return fail("unknown-dtype", "slices of a type without numbers");
    if (!byte_count(*dtype, whole_.shape))
      return fail("shape-overflow", "a shape of more than 2^64 bytes");
    SliceGrid& grid = out_.grid;
    grid.shape = whole_.shape;
    grid.element_bytes = dtype_bits(*dtype) / 8;
    if (!cut()) return fail("bundle-slice", "the slices do not tile the tensor");
    for (const BundleSlice& slice : whole_.slices) {
      const BundleEntry* entry = find(slice_key(whole_.name, slice));
      if (entry == nullptr) return fail("bundle-slice", "a slice has no entry");
      Shape lengths;
      const auto cell = cell_of(slice, lengths);
      if (!cell || out_.cells[*cell] != nullptr)
        return fail("bundle-slice", "the slices do not tile the tensor");
      if (entry->type != whole_.type || entry->shape != lengths || !entry->slices.empty()) {
        return Violation{"bundle-slice",
                         fmt::format("a slice of type {} and shape {}, expected {} and {}",
                                     tensorflow_type_name(entry->type), shape_text(entry->shape),
                                     tensorflow_type_name(whole_.type), shape_text(lengths)),
                         whole_.name, entry->at};
      }
      out_.cells[*cell] = entry;
      grid.cells[*cell] = {entry->shard, entry->offset};
    }
    return std::move(out_);
  }

 private:
  Violation fail(const char* rule, const char* message) const {
    return {rule, message, whole_.name, whole_.at};
  }

  /// Where cells begin in each dimension; false if there are not as many slices as cells.
  bool cut() {
    auto& cuts = out_.grid.cuts;
    cuts.resize(whole_.shape.size());
    for (const BundleSlice& slice : whole_.slices) {
      if (slice.size() != cuts.size()) return false;
      for (std::size_t i = 0; i < cuts.size(); ++i) cuts[i].push_back(slice[i].start);
    }
    std::uint64_t cells = 1;
    for (Shape& starts : cuts) {
      std::ranges::sort(starts);
      starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
      const auto product = checked_multiply(cells, starts.size());
      if (!product || starts.front() != 0) return false;
      cells = *product;
    }
    if (cells != whole_.slices.size()) return false;
    out_.cells.resize(cells);
    out_.grid.cells.resize(cells);
    return true;
  }

  /// Which cell a slice is, and its shape; nothing if it is none.
  std::optional<std::size_t> cell_of(const BundleSlice& slice, Shape& lengths) const {
    std::size_t cell = 0;
    for (std::size_t i = 0; i < slice.size(); ++i) {
      const Shape& cuts = out_.grid.cuts[i];
      const auto at = std::ranges::lower_bound(cuts, slice[i].start);
      const auto next = std::next(at);
      const std::uint64_t end = next == cuts.end() ? whole_.shape[i] : *next;
      if (end < *at) return std::nullopt;
      const bool whole = !slice[i].length && cuts.size() == 1;
      if (!whole && slice[i].length != end - *at) return std::nullopt;
      lengths.push_back(end - *at);
      cell = cell * cuts.size() + static_cast<std::size_t>(at - cuts.begin());
    }
    return cell;
  }

  const BundleEntry& whole_;
  SlicedEntry out_;
};

/// The slices of `whole` as a grid. `find` gives the entry of a key, nullptr if there is none. The
/// rule "bundle-slice": they do not tile the tensor as a grid does, or an entry is missing or says
/// something else than the whole one; "shape-overflow"; "unknown-dtype". The entries' places are
/// not looked at. Cost O(slices · log).
Checked<SlicedEntry> grid_of_slices(
    const BundleEntry& whole,
    const std::function<const BundleEntry*(const std::string& key)>& find) {
  return GridBuilder(whole).build(find);
}

// The index, and what it says of the data files.

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

namespace {

constexpr std::uint64_t kPatchBytes = 1 << 20;
constexpr unsigned kSumField = 6;  // of BundleEntryProto

bool touches(const PatchedFile& file, const BundleEntry& entry) {
  return std::ranges::any_of(file.changed, [&](const auto& range) {
    return range.first < entry.offset + entry.size && range.first + range.second > entry.offset;
  });
}

std::uint32_t new_sum(const PatchedFile& file, const BundleEntry& entry) {
  std::vector<std::byte> buffer(std::min(kPatchBytes, entry.size));
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  for (std::uint64_t at = 0; at < entry.size; at += kPatchBytes) {
    throw_if_interrupted();
    const MutableBytes part = MutableBytes(buffer).first(std::min(kPatchBytes, entry.size - at));
    file.file->read(entry.offset + at, part);
    before = crc32c(part, before);
    file.read(entry.offset + at, part);
    after = crc32c(part, after);
  }
  if (masked_crc32c(before) != entry.crc) {
    throw InputError(file.file->path(),
                     fmt::format("bundle-crc: tensor '{}' is damaged: it differs from its CRC-32C",
                                 escape(entry.name)));
  }
  return masked_crc32c(after);
}

/// Where the sum stands in the valid message of an entry; its end: nowhere.
std::size_t place_of_sum(std::string_view message) {
  std::size_t place = message.size();
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t tag = read_varint(message, at).value();
    switch (static_cast<WireType>(tag & 7U)) {
      case WireType::kVarint: read_varint(message, at); break;
      case WireType::kFixed64: at += 8; break;
      case WireType::kBytes: {
        const std::uint64_t size = read_varint(message, at).value();
        at += size;
        break;
      }
      case WireType::kFixed32:
        if (tag >> 3 == kSumField) place = at;  // of several the last one counts
        at += 4;
        break;
    }
  }
  return place;
}

std::string with_sum(const std::string& message, std::uint32_t sum) {
  const std::size_t place = place_of_sum(message);
  std::string out = message;
  if (place == message.size()) {  // 0 is left out
    wire::put_fixed32(out, kSumField, sum);
    return out;
  }
  std::string bytes;
  wire::put_u32(bytes, sum);
  return out.replace(place, bytes.size(), bytes);
}

}  // namespace

std::string patched_bundle_index(const BundleIndex& index, std::span<const PatchedFile> files) {
  const auto rows = value_or_throw(read_leveldb_table(as_bytes(index.text), TableSums::kIgnored));
  MASQUE_CHECK(rows.size() == index.entries.size() + 1);
  LevelDbTableWriter table;
  table.add(rows[0].key, rows[0].value);
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    const BundleEntry& entry = index.entries[i];
    const auto& [key, value, offset] = rows[i + 1];
    const bool changes = entry.slices.empty() && touches(files[entry.shard], entry);
    table.add(key, changes ? with_sum(value, new_sum(files[entry.shard], entry)) : value);
  }
  return table.finish();
}

}  // namespace masque::store
