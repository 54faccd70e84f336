// A mask is a predicate on (query, key); everything else is derived from it and tested against it.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/types.hpp"

namespace masque::mask {

/// Half-open run of positions.
struct Range {
  Index begin = 0;  ///< the first
  Index end = 0;    ///< after the last
  /// Number of positions.
  Index size() const { return end - begin; }
};

/// How many rows (queries) and columns (keys) a mask has.
struct Lengths {
  Index queries = 0;  ///< rows
  Index keys = 0;     ///< columns
  bool operator==(const Lengths&) const = default;
};

/// What a mask lets through in a rectangle.
enum class Cover : unsigned char { kEmpty, kPartial, kFull };

/// Cells of a block of at most 64 × 64: one word a row, its first key in bit 0.
using Tile = std::array<std::uint64_t, 64>;

/// The definition of a mask. Immutable, shared by copies, thread-safe. True means may read.
class MaskNode {
 public:
  MaskNode() = default;
  MaskNode(const MaskNode&) = delete;
  MaskNode& operator=(const MaskNode&) = delete;
  virtual ~MaskNode() = default;

  /// The predicate: whether query `q` may read key `k`. 0 ≤ q < queries, 0 ≤ k < keys.
  virtual bool allows(Index q, Index k) const = 0;
  /// What the mask lets through in the rows `q` and columns `k`. Sound for every rectangle that is
  /// not empty: kEmpty and kFull are true statements; kPartial may mean "not known". The default
  /// looks at the bits, row by row, and is exact.
  virtual Cover cover(Range q, Range k) const;
  /// Keys k0 … k0 + n − 1 of row `q`, key `k0` in bit 0; `n` from 1 to 64; the other bits are 0.
  /// The default asks `allows`.
  virtual std::uint64_t bits(Index q, Index k0, int n) const;
  /// Puts the cells of the rows `q` and columns `k`, at most 64 × 64, into `out`, a word a row;
  /// words after its rows are left as they are. The default asks `bits`.
  virtual void tile(Range q, Range k, Tile& out) const;
};

/// A mask for given lengths: a small value. Copies share the definition; thread-safe.
class Mask {
 public:
  /// The definition `node`, not nullptr, for `lengths`.
  Mask(std::shared_ptr<const MaskNode> node, Lengths lengths)
      : node_(std::move(node)), lengths_(lengths) {}

  /// Numbers of queries and keys.
  Lengths lengths() const { return lengths_; }
  /// Whether query `q` may read key `k`; see MaskNode::allows.
  bool allows(Index q, Index k) const { return node_->allows(q, k); }
  /// What it lets through in the rows `q` and columns `k`; see MaskNode::cover.
  Cover cover(Range q, Range k) const { return node_->cover(q, k); }
  /// `n` keys of row `q` from `k0` on; see MaskNode::bits.
  std::uint64_t bits(Index q, Index k0, int n) const { return node_->bits(q, k0, n); }
  /// Puts the cells of the rows `q` and columns `k` into `out`; see MaskNode::tile.
  void tile(Range q, Range k, Tile& out) const { node_->tile(q, k, out); }
  /// The definition, which copies share.
  const std::shared_ptr<const MaskNode>& node() const { return node_; }

 private:
  std::shared_ptr<const MaskNode> node_;
  Lengths lengths_;
};

/// The cells that both masks show; they must have the same lengths.
Mask operator&(const Mask& a, const Mask& b);
/// The cells that one of the masks shows, or both; they must have the same lengths.
Mask operator|(const Mask& a, const Mask& b);
/// The cells that the mask hides.
Mask operator~(const Mask& a);

/// Queries first … first + count − 1 of `mask`, all of which it has, now numbered from 0: a step of
/// decoding, say.
Mask query_range(const Mask& mask, Index first, Index count);

/// The low `n` bits set: none for n ≤ 0, all from 64 on.
inline std::uint64_t low_bits(Index n) {
  return n >= 64 ? ~std::uint64_t{0} : n <= 0 ? 0 : (std::uint64_t{1} << n) - 1;
}

/// Bits of the keys in [begin, end) among the `n` keys from `k0`, at most 64; key `k0` is bit 0.
inline std::uint64_t range_bits(Index begin, Index end, Index k0, int n) {
  const Index low = begin > k0 ? begin - k0 : 0;
  const Index high = end - k0 < n ? end - k0 : n;
  return low >= high ? 0 : low_bits(high) & ~low_bits(low);
}

}  // namespace masque::mask
