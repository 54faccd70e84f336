#include "mask/mask.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::mask {

Cover MaskNode::cover(Range q, Range k) const {
  bool some = false;
  bool all = true;
  for (Index row = q.begin; row < q.end; ++row) {
    throw_if_interrupted();
    for (Index k0 = k.begin; k0 < k.end; k0 += 64) {
      const int n = static_cast<int>(std::min<Index>(64, k.end - k0));
      const std::uint64_t found = bits(row, k0, n);
      some = some || found != 0;
      all = all && found == low_bits(n);
      if (some && !all) return Cover::kPartial;
    }
  }
  return all ? Cover::kFull : Cover::kEmpty;
}

std::uint64_t MaskNode::bits(Index q, Index k0, int n) const {
  std::uint64_t found = 0;
  for (int i = 0; i < n; ++i) found |= std::uint64_t{allows(q, k0 + i)} << i;
  return found;
}

void MaskNode::tile(Range q, Range k, Tile& out) const {
  const int n = static_cast<int>(k.size());
  for (Index row = q.begin; row < q.end; ++row) {
    out[static_cast<std::size_t>(row - q.begin)] = bits(row, k.begin, n);
  }
}

namespace {

using Node = std::shared_ptr<const MaskNode>;

class And final : public MaskNode {
 public:
  And(Node a, Node b) : a_(std::move(a)), b_(std::move(b)) {}
  bool allows(Index q, Index k) const override { return a_->allows(q, k) && b_->allows(q, k); }
  Cover cover(Range q, Range k) const override {
    const Cover a = a_->cover(q, k);
    return a == Cover::kEmpty ? a : std::min(a, b_->cover(q, k));
  }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    const std::uint64_t a = a_->bits(q, k0, n);
    return a == 0 ? 0 : a & b_->bits(q, k0, n);
  }
  void tile(Range q, Range k, Tile& out) const override {
    if (a_->cover(q, k) == Cover::kFull) return b_->tile(q, k, out);
    a_->tile(q, k, out);
    if (b_->cover(q, k) == Cover::kFull) return;
    Tile b;
    b_->tile(q, k, b);
    for (std::size_t i = 0; i < static_cast<std::size_t>(q.size()); ++i) out[i] &= b[i];
  }

 private:
  Node a_;
  Node b_;
};

class Or final : public MaskNode {
 public:
  Or(Node a, Node b) : a_(std::move(a)), b_(std::move(b)) {}
  bool allows(Index q, Index k) const override { return a_->allows(q, k) || b_->allows(q, k); }
  Cover cover(Range q, Range k) const override {
    const Cover a = a_->cover(q, k);
    return a == Cover::kFull ? a : std::max(a, b_->cover(q, k));
  }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    return a_->bits(q, k0, n) | b_->bits(q, k0, n);
  }
  void tile(Range q, Range k, Tile& out) const override {
    if (a_->cover(q, k) == Cover::kEmpty) return b_->tile(q, k, out);
    a_->tile(q, k, out);
    if (b_->cover(q, k) == Cover::kEmpty) return;
    Tile b;
    b_->tile(q, k, b);
    for (std::size_t i = 0; i < static_cast<std::size_t>(q.size()); ++i) out[i] |= b[i];
  }

 private:
  Node a_;
  Node b_;
};

class Not final : public MaskNode {
 public:
  explicit Not(Node a) : a_(std::move(a)) {}
  bool allows(Index q, Index k) const override { return !a_->allows(q, k); }
  Cover cover(Range q, Range k) const override {
    const Cover a = a_->cover(q, k);
    return a == Cover::kEmpty ? Cover::kFull : a == Cover::kFull ? Cover::kEmpty : a;
  }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    return ~a_->bits(q, k0, n) & low_bits(n);
  }
  void tile(Range q, Range k, Tile& out) const override {
    a_->tile(q, k, out);
    const std::uint64_t all = low_bits(k.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(q.size()); ++i) out[i] = ~out[i] & all;
  }

 private:
  Node a_;
};

class QueryRange final : public MaskNode {
 public:
  QueryRange(Node whole, Index first) : whole_(std::move(whole)), first_(first) {}
  bool allows(Index q, Index k) const override { return whole_->allows(q + first_, k); }
  Cover cover(Range q, Range k) const override { return whole_->cover(moved(q), k); }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    return whole_->bits(q + first_, k0, n);
  }
  void tile(Range q, Range k, Tile& out) const override { whole_->tile(moved(q), k, out); }

 private:
  Range moved(Range q) const { return {q.begin + first_, q.end + first_}; }
  Node whole_;
  Index first_;
};

}  // namespace

Mask query_range(const Mask& mask, Index first, Index count) {
  MASQUE_CHECK(first >= 0 && count >= 0 && first + count <= mask.lengths().queries);
  return {std::make_shared<QueryRange>(mask.node(), first), {count, mask.lengths().keys}};
}

Mask operator&(const Mask& a, const Mask& b) {
  MASQUE_CHECK(a.lengths() == b.lengths());
  return {std::make_shared<And>(a.node(), b.node()), a.lengths()};
}

Mask operator|(const Mask& a, const Mask& b) {
  MASQUE_CHECK(a.lengths() == b.lengths());
  return {std::make_shared<Or>(a.node(), b.node()), a.lengths()};
}

Mask operator~(const Mask& a) { return {std::make_shared<Not>(a.node()), a.lengths()}; }

}  // namespace masque::mask
