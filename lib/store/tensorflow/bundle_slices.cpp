#include "store/tensorflow/bundle_slices.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.hpp"

namespace masque::store {

namespace {

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

}  // namespace

Checked<SlicedEntry> grid_of_slices(
    const BundleEntry& whole,
    const std::function<const BundleEntry*(const std::string& key)>& find) {
  return GridBuilder(whole).build(find);
}

}  // namespace masque::store
