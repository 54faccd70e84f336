#include "store/piece_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kMostCached = std::uint64_t{256} << 20;

}  // namespace

std::uint64_t StoredPiece::bytes() const {
  return codes.size() + (scales.size() + zeros.size()) * sizeof(float) +
         (words.size() + groups.size()) * sizeof(std::uint32_t);
}

std::shared_ptr<const StoredPiece> PieceCache::get(const void* owner, std::uint64_t piece,
                                                   const std::function<StoredPiece()>& load) {
  const auto is_it = [&](const Entry& entry) {
    return entry.owner == owner && entry.piece == piece;
  };
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(entries_, is_it);
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return found->parts;
    }
  }
  // Two threads may read the same piece; neither waits for the other.
  auto parts = std::make_shared<const StoredPiece>(load());
  const std::lock_guard lock(mutex_);
  if (std::ranges::find_if(entries_, is_it) != entries_.end()) return parts;
  entries_.push_front({owner, piece, parts});
  bytes_ += parts->bytes();
  while (bytes_ > kMostCached && entries_.size() > 1) {
    bytes_ -= entries_.back().parts->bytes();
    entries_.pop_back();
  }
  return parts;
}

void PieceCache::forget(const void* owner) {
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    if (at->owner != owner) {
      ++at;
      continue;
    }
    bytes_ -= at->parts->bytes();
    at = entries_.erase(at);
  }
}

PieceReader::PieceReader(std::uint64_t elements, std::uint64_t piece_elements,
                         std::shared_ptr<PieceCache> cache)
    : elements_(elements), piece_elements_(piece_elements), cache_(std::move(cache)) {
  MASQUE_CHECK(piece_elements_ > 0);
}

// Another reader may get this one's address.
PieceReader::~PieceReader() { cache_->forget(this); }

void PieceReader::read(const InputFile& /*file*/, std::uint64_t offset, MutableBytes out) const {
  MASQUE_CHECK(offset % sizeof(float) == 0 && out.size() % sizeof(float) == 0);
  std::vector<float> numbers;
  std::uint64_t at = offset / sizeof(float);
  MASQUE_CHECK(at + out.size() / sizeof(float) <= elements_);
  while (!out.empty()) {
    const std::uint64_t piece = at / piece_elements_;
    const std::uint64_t first = at % piece_elements_;
    const std::uint64_t count =
        std::min<std::uint64_t>(out.size() / sizeof(float), piece_elements_ - first);
    const auto stored = cache_->get(this, piece, [&] { return load(piece); });
    numbers.resize(count);
    decode(*stored, piece, first, numbers);
    std::ranges::copy(std::as_bytes(std::span(numbers)), out.begin());
    out = out.subspan(count * sizeof(float));
    at += count;
  }
}

}  // namespace masque::store
