#include "store/tensorflow/sliced_tensor.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::store {

namespace {

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

}  // namespace

std::shared_ptr<const TensorReader> sliced_reader(SliceGrid grid, std::size_t own_file,
                                                  BundleFiles files) {
  return std::make_shared<SlicedReader>(std::move(grid), own_file, std::move(files));
}

}  // namespace masque::store
