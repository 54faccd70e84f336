#include "store/strided_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <vector>

namespace masque::store {

class StridedTile {
 public:
  std::mutex mutex;
  const TensorReader* owner = nullptr;
  std::uint64_t first = 0;  ///< byte of the owner's tensor
  std::vector<std::byte> bytes;
};

namespace {

constexpr std::uint64_t kBufferBytes = 4 << 20;
constexpr std::uint64_t kTileBytes = 16 << 20;
/// A span is read as a whole if at most one in so many of its bytes is used, or if it is short.
constexpr std::uint64_t kSpread = 8;
constexpr std::uint64_t kShortBytes = 4096;

/// A loop over elements; steps in elements.
struct Loop {
  std::uint64_t count = 1;
  std::uint64_t from = 0;  ///< step in the file
  std::uint64_t to = 0;    ///< step in the output
};

/// Loops without those of one step, neighbours that are one loop joined; outermost first.
std::vector<Loop> loops_of(const Shape& sizes, const Shape& strides) {
  std::vector<Loop> loops;
  std::uint64_t to = 1;
  for (std::size_t i = sizes.size(); i > 0; --i) {
    const Loop loop{sizes[i - 1], strides[i - 1], to};
    to *= loop.count;
    if (loop.count == 1) continue;
    if (!loops.empty() && loop.from == loops.back().from * loops.back().count && loop.from != 0) {
      loops.back().count *= loop.count;
    } else {
      loops.push_back(loop);
    }
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

template <std::size_t kBytes>
void gather(const std::byte* from, std::byte* to, std::span<const Loop> loops) {
  if (loops.empty()) {
    std::memcpy(to, from, kBytes);
    return;
  }
  const Loop& loop = loops[0];
  if (loops.size() == 1) {
    for (std::uint64_t i = 0; i < loop.count; ++i)
      std::memcpy(to + i * loop.to * kBytes, from + i * loop.from * kBytes, kBytes);
    return;
  }
  for (std::uint64_t i = 0; i < loop.count; ++i)
    gather<kBytes>(from + i * loop.from * kBytes, to + i * loop.to * kBytes, loops.subspan(1));
}

void gather(std::uint64_t element_bytes, const std::byte* from, std::byte* to,
            std::span<const Loop> loops) {
  switch (element_bytes) {
    case 1: return gather<1>(from, to, loops);
    case 2: return gather<2>(from, to, loops);
    case 4: return gather<4>(from, to, loops);
    default: return gather<8>(from, to, loops);
  }
}

void swap(std::uint64_t unit, MutableBytes bytes) {
  for (std::size_t at = 0; at + unit <= bytes.size(); at += unit)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + unit));
}

class StridedReader : public TensorReader {
 public:
  StridedReader(const StridedPlace& place, std::shared_ptr<StridedTile> tile)
      : begin_(place.begin),
        bytes_(place.element_bytes),
        swap_bytes_(place.swap_bytes),
        loops_(loops_of(place.sizes, place.strides)),
        size_(bytes_ * element_count(place.sizes).value()),
        tile_(std::move(tile)) {
    std::uint64_t row = bytes_;
    for (std::size_t i = 1; i < loops_.size(); ++i) row *= loops_[i].count;
    tile_bytes_ = row < kTileBytes ? kTileBytes / row * row : kTileBytes;
    in_order_ = std::ranges::is_sorted(loops_, std::ranges::greater(), &Loop::from);
  }
  ~StridedReader() override {
    const std::lock_guard lock(tile_->mutex);
    if (tile_->owner == this) tile_->owner = nullptr;
  }

  void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const override {
    if (in_order_ || out.size() >= kTileBytes) return read_directly(file, offset, out);
    const std::lock_guard lock(tile_->mutex);
    const bool last = offset + out.size() == size_;
    while (!out.empty()) {
      const std::uint64_t first = offset / tile_bytes_ * tile_bytes_;
      if (tile_->owner != this || tile_->first != first) {
        tile_->owner = nullptr;  // if reading fails
        tile_->bytes.resize(std::min(tile_bytes_, size_ - first));
        read_directly(file, first, tile_->bytes);
        tile_->owner = this;
        tile_->first = first;
      }
      const Bytes from = Bytes(tile_->bytes).subspan(offset - first);
      const std::size_t size = std::min(from.size(), out.size());
      std::memcpy(out.data(), from.data(), size);
      offset += size;
      out = out.subspan(size);
    }
    if (!last) return;
    tile_->owner = nullptr;
    std::vector<std::byte>().swap(tile_->bytes);
  }

  std::pair<std::uint64_t, std::uint64_t> extent() const {
    std::uint64_t last = 0;
    for (const Loop& loop : loops_) last += (loop.count - 1) * loop.from;
    return {begin_, begin_ + (last + 1) * bytes_};
  }

 private:
  void read_directly(const InputFile& file, std::uint64_t offset, MutableBytes out) const {
    const std::uint64_t odd = offset % bytes_;
    std::uint64_t element = offset / bytes_;
    if (odd > 0 && !out.empty()) out = out.subspan(read_part(file, element++, odd, out));
    const std::uint64_t whole = out.size() / bytes_;
    read_elements(file, element, out.first(whole * bytes_));
    const MutableBytes rest = out.subspan(whole * bytes_);
    if (!rest.empty()) read_part(file, element + whole, 0, rest);
  }

  /// The bytes from `odd` on of one element, as far as there is room. Returns their number.
  std::size_t read_part(const InputFile& file, std::uint64_t element, std::uint64_t odd,
                        MutableBytes out) const {
    std::array<std::byte, 8> buffer{};
    read_elements(file, element, MutableBytes(buffer).first(bytes_));
    const Bytes part = Bytes(buffer).subspan(odd, std::min<std::size_t>(bytes_ - odd, out.size()));
    std::ranges::copy(part, out.begin());
    return part.size();
  }

  /// Cuts a run of elements into boxes: as many steps of one loop as fit, and all of those inside.
  void read_elements(const InputFile& file, std::uint64_t element, MutableBytes out) const {
    const MutableBytes all = out;
    while (!out.empty()) {
      const std::uint64_t left = out.size() / bytes_;
      std::uint64_t inside = 1;  // elements of one step
      std::size_t first = loops_.size();
      while (first > 0) {
        const std::uint64_t more = inside * loops_[first - 1].count;
        if (element % more != 0 || more > left) break;
        inside = more;
        --first;
      }
      std::vector<Loop> box(loops_.begin() + static_cast<std::ptrdiff_t>(first), loops_.end());
      std::uint64_t count = 1;
      if (first > 0) {
        const Loop& loop = loops_[first - 1];
        count = std::min(left / inside, loop.count - element / inside % loop.count);
        box.insert(box.begin(), {count, loop.from, loop.to});
      }
      read_box(file, place_of(element), std::move(box), out.first(count * inside * bytes_));
      element += count * inside;
      out = out.subspan(count * inside * bytes_);
    }
    if (swap_bytes_ > 1) swap(swap_bytes_, all);
  }

  /// Element of the file, from begin_ on.
  std::uint64_t place_of(std::uint64_t element) const {
    std::uint64_t place = 0;
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      place += element % loop->count * loop->from;
      element /= loop->count;
    }
    return place;
  }

  void read_box(const InputFile& file, std::uint64_t place, std::vector<Loop> box,
                MutableBytes out) const {
    // In the order of the file; what is repeated, innermost: it is read once.
    std::ranges::stable_sort(box, std::ranges::greater(), &Loop::from);
    std::size_t inner = box.size();  // box[inner] and those after it lie in one span
    std::uint64_t span = 1;
    std::uint64_t used = 1;
    for (; inner > 0; --inner) {
      const Loop& loop = box[inner - 1];
      const std::uint64_t longer = span + (loop.count - 1) * loop.from;
      if (loop.from > 0) used *= loop.count;
      if (longer * bytes_ > kBufferBytes) break;
      if (longer > used * kSpread && longer * bytes_ > kShortBytes) break;
      span = longer;
    }
    // A loop that is only too long is cut.
    if (inner > 0 && box[inner - 1].from * kSpread * bytes_ < kBufferBytes &&
        box[inner - 1].from <= span * kSpread) {
      const Loop whole = box[inner - 1];
      const std::uint64_t most =
          std::max<std::uint64_t>(1, (kBufferBytes / bytes_ - span) / whole.from);
      if (most < whole.count) {
        for (std::uint64_t at = 0; at < whole.count; at += most) {
          box[inner - 1].count = std::min(most, whole.count - at);
          read_box(file, place + at * whole.from, box, out.subspan(at * whole.to * bytes_));
        }
        return;
      }
    }
    std::vector<std::byte> buffer(span * bytes_);
    read_spans(file, place, std::span(box).first(inner), std::span(box).subspan(inner), buffer,
               out);
  }

  /// One span for every step of the outer loops.
  void read_spans(const InputFile& file, std::uint64_t place, std::span<const Loop> outer,
                  std::span<const Loop> inner, MutableBytes buffer, MutableBytes out) const {
    if (!outer.empty()) {
      for (std::uint64_t i = 0; i < outer[0].count; ++i) {
        read_spans(file, place + i * outer[0].from, outer.subspan(1), inner, buffer,
                   out.subspan(i * outer[0].to * bytes_));
      }
      return;
    }
    file.read(begin_ + place * bytes_, buffer);
    gather(bytes_, buffer.data(), out.data(), inner);
  }

  std::uint64_t begin_;
  std::uint64_t bytes_;
  std::uint64_t swap_bytes_;
  std::vector<Loop> loops_;
  std::uint64_t size_;  ///< bytes of the tensor
  std::uint64_t tile_bytes_;
  bool in_order_;
  std::shared_ptr<StridedTile> tile_;
};

}  // namespace

bool is_contiguous(const Shape& sizes, const Shape& strides) {
  std::uint64_t step = 1;
  for (std::size_t i = sizes.size(); i > 0; --i) {
    if (sizes[i - 1] != 1 && strides[i - 1] != step) return false;
    step *= sizes[i - 1];
  }
  return true;
}

std::shared_ptr<StridedTile> make_strided_tile() { return std::make_shared<StridedTile>(); }

std::shared_ptr<const TensorReader> make_strided_reader(const StridedPlace& place,
                                                        std::shared_ptr<StridedTile> tile) {
  return std::make_shared<StridedReader>(place, std::move(tile));
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> strided_extent(const TensorReader& reader) {
  const auto* strided = dynamic_cast<const StridedReader*>(&reader);
  if (strided == nullptr) return std::nullopt;
  return strided->extent();
}

}  // namespace masque::store
