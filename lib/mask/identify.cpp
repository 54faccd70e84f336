#include "mask/identify.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "mask/report.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

namespace {

constexpr int kNoCost = std::numeric_limits<int>::max();

/// Searches among candidates, first by sketch, then exactly. Cells outside `care` are free.
class Search {
 public:
  Search(const Mask& mask, const SampledCells& sampling, std::vector<Candidate> candidates)
      : mask_(mask),
        sampling_(sampling),
        sketch_(sampling.sketch(mask)),
        candidates_(std::move(candidates)) {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  }

  /// The simplest name or pair of names that equals the mask where `frame` lets through (everywhere
  /// without one); the frame is then added to it.
  std::optional<MaskExpression> exact(const std::optional<MaskExpression>& frame) const {
    Sketch care;
    care.fill(~std::uint64_t{0});
    if (frame) care = sampling_.sketch(frame->bind(mask_.lengths()));
    if (auto found = single(care, frame)) return found;
    std::optional<MaskExpression> best;
    int cost = kNoCost;
    pair(MaskExpression::Kind::kAnd, care, frame, cost, best);
    pair(MaskExpression::Kind::kOr, care, frame, cost, best);
    return best;
  }

  /// The candidate or pair of candidates with the fewest differences, as far as they were tried.
  MaskExpression nearest() const {
    const auto single = std::min_element(candidates_.begin(), candidates_.end(),
                                         [&](const Candidate& a, const Candidate& b) {
                                           return distance(a.sketch) < distance(b.sketch);
                                         });
    const std::uint64_t least = distance(single->sketch);
    // A second term must earn its place.
    Near best{least - least / 5, 0, std::nullopt};
    near_pairs(MaskExpression::Kind::kAnd, best);
    near_pairs(MaskExpression::Kind::kOr, best);
    return best.expression ? *best.expression : single->expression;
  }

 private:
  struct Near {
    std::uint64_t distance;
    int cost;
    std::optional<MaskExpression> expression;
  };

  /// Pairs of the candidates that hide (for `|`: show) the fewest cells that the mask shows
  /// (hides): the other differences can be mended by the other term, these cannot.
  void near_pairs(MaskExpression::Kind kind, Near& best) const {
    constexpr std::size_t kMost = 2000;
    const bool both = kind == MaskExpression::Kind::kAnd;
    std::vector<std::tuple<std::uint64_t, std::uint64_t, const Candidate*>> order;
    order.reserve(candidates_.size());
    for (const Candidate& candidate : candidates_) {
      std::uint64_t lasting = 0;
      for (std::size_t row = 0; row < sampling_.rows(); ++row) {
        const std::uint64_t a = candidate.sketch[row];
        const std::uint64_t m = sketch_[row];
        lasting += static_cast<std::uint64_t>(std::popcount(both ? m & ~a : a & ~m));
      }
      order.emplace_back(lasting, distance(candidate.sketch), &candidate);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    if (order.size() > kMost) order.resize(kMost);
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Candidate& a = *std::get<2>(order[j]);
        const Candidate& b = *std::get<2>(order[i]);
        std::uint64_t found = 0;
        for (std::size_t row = 0; row < sampling_.rows() && found <= best.distance; ++row) {
          const std::uint64_t joined =
              both ? a.sketch[row] & b.sketch[row] : a.sketch[row] | b.sketch[row];
          found += static_cast<std::uint64_t>(std::popcount(joined ^ sketch_[row]));
        }
        const int cost = a.cost + b.cost;
        if (std::tie(best.distance, best.cost) <= std::tie(found, cost)) continue;
        best = {found, cost, join(kind, a, b)};
      }
    }
  }

  std::uint64_t distance(const Sketch& sketch) const {
    std::uint64_t sum = 0;
    for (std::size_t row = 0; row < sampling_.rows(); ++row) {
      sum += static_cast<std::uint64_t>(std::popcount(sketch[row] ^ sketch_[row]));
    }
    return sum;
  }

  MaskExpression join(MaskExpression::Kind kind, const Candidate& a, const Candidate& b) const {
    const auto term = [&](const Candidate& c) {
      // What is cut off is padding, what is added is a prefix.
      const std::string& name = c.expression.name();
      if (kind == MaskExpression::Kind::kAnd && name == "prefix") {
        return MaskExpression("pad", c.expression.arguments());
      }
      return kind == MaskExpression::Kind::kOr && name == "pad"
                 ? MaskExpression("prefix", c.expression.arguments())
                 : c.expression;
    };
    return {kind, term(a), term(b)};
  }

  static MaskExpression framed(MaskExpression expression,
                               const std::optional<MaskExpression>& frame) {
    if (!frame || expression == *frame) return expression;
    return {MaskExpression::Kind::kAnd, std::move(expression), *frame};
  }

  /// The samples agree; so do the masks?
  bool equal(const MaskExpression& expression) const {
    return sampling_.complete() || compare_masks(mask_, expression.bind(mask_.lengths())).equal();
  }

  std::optional<MaskExpression> single(const Sketch& care,
                                       const std::optional<MaskExpression>& frame) const {
    constexpr int kComplement = 2;
    std::optional<MaskExpression> complement;
    int complement_cost = kNoCost;
    for (const Candidate& candidate : candidates_) {
      if (candidate.cost >= complement_cost) break;
      bool same = true;
      bool opposite = true;
      for (std::size_t row = 0; row < sampling_.rows() && (same || opposite); ++row) {
        const std::uint64_t differing = (candidate.sketch[row] ^ sketch_[row]) & care[row];
        same = same && differing == 0;
        opposite = opposite && differing == (columns_[row] & care[row]);
      }
      if (same) {
        MaskExpression expression = framed(candidate.expression, frame);
        if (equal(expression)) return expression;
      }
      if (!opposite || complement) continue;
      MaskExpression expression =
          framed({MaskExpression::Kind::kNot, candidate.expression, std::nullopt}, frame);
      if (!equal(expression)) continue;
      complement_cost = candidate.cost + kComplement;
      complement = std::move(expression);
    }
    return complement;
  }

  /// Both terms of an `&` let everything through that the mask does, both of an `|` nothing else:
  /// few are left to be paired.
  void pair(MaskExpression::Kind kind, const Sketch& care,
            const std::optional<MaskExpression>& frame, int& cost,
            std::optional<MaskExpression>& best) const {
    const bool both = kind == MaskExpression::Kind::kAnd;
    const std::size_t rows = sampling_.rows();
    // What a term has beyond the mask (lacks of it): two terms must have nothing in common there.
    struct Term {
      const Candidate* candidate;
      Sketch surplus;
    };
    std::vector<Term> terms;
    for (const Candidate& candidate : candidates_) {
      Term term{&candidate, {}};
      bool fits = true;
      for (std::size_t row = 0; row < rows && fits; ++row) {
        const std::uint64_t more = candidate.sketch[row] & ~sketch_[row] & care[row];
        const std::uint64_t less = sketch_[row] & ~candidate.sketch[row] & care[row];
        fits = (both ? less : more) == 0;
        term.surplus[row] = both ? more : less;
      }
      if (fits) terms.push_back(term);
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const int left = terms[i].candidate->cost;
      if (left > cost - left) break;
      for (std::size_t j = i + 1; j < terms.size(); ++j) {
        if (terms[j].candidate->cost >= cost - left) break;
        std::uint64_t common = 0;
        for (std::size_t row = 0; row < rows && common == 0; ++row) {
          common = terms[i].surplus[row] & terms[j].surplus[row];
        }
        if (common != 0) continue;
        MaskExpression expression =
            framed(join(kind, *terms[i].candidate, *terms[j].candidate), frame);
        if (!equal(expression)) continue;
        cost = left + terms[j].candidate->cost;
        best = std::move(expression);
      }
    }
  }

  const Mask& mask_;
  const SampledCells& sampling_;
  Sketch sketch_;
  std::vector<Candidate> candidates_;
  Sketch columns_ = sampling_.sketch(mask_ | ~mask_);
};

}  // namespace

Identification identify_mask(const Mask& mask) {
  const SampledCells sampling(mask.lengths());
  std::vector<Candidate> candidates = numbered_candidates(mask, sampling);
  for (Candidate& candidate : listed_candidates(mask, sampling)) {
    candidates.push_back(std::move(candidate));
  }
  const Search search(mask, sampling, std::move(candidates));
  std::optional<MaskExpression> found = search.exact(std::nullopt);
  for (const auto& frame : {enclosing_keys(mask), enclosing_documents(mask)}) {
    if (!found && frame) found = search.exact(frame);
  }
  MaskExpression expression = found ? *std::move(found) : search.nearest();
  const MaskDifference difference = compare_masks(mask, expression.bind(mask.lengths()));
  return {std::move(expression), difference};
}

namespace {

constexpr Index kSample = 64;
constexpr Index kRun = 16;

/// Runs of positions: all of them, or four spread over the length.
std::vector<Range> runs_of(Index length) {
  if (length <= kSample) return {{0, length}};
  const Index third = (length - kRun) / 3;
  return {{0, kRun}, {third, third + kRun}, {2 * third, 2 * third + kRun}, {length - kRun, length}};
}

/// Names that others say more simply come last among equals.
int unfamiliarity(std::string_view name) {
  static constexpr std::string_view kFirst[] = {"full",   "causal", "diagonal",      "tta",
                                                "window", "prefix", "causal_window", "document"};
  static constexpr std::string_view kLast[] = {"super", "glm", "reverse", "pad", "dilated"};
  if (std::find(std::begin(kFirst), std::end(kFirst), name) != std::end(kFirst)) return 0;
  return std::find(std::begin(kLast), std::end(kLast), name) != std::end(kLast) ? 2 : 1;
}

/// All ways to give a kind its numbers.
class Enumerator {
 public:
  Enumerator(const MaskKind& kind, Lengths lengths, const std::vector<Index>& numbers)
      : kind_(kind), lengths_(lengths), numbers_(numbers) {}

  static bool fits(const MaskKind& kind, Lengths lengths) {
    if (kind.fits != Fits::kAny && lengths.queries != lengths.keys) return false;
    if (kind.fits == Fits::kHalves && lengths.queries % 2 != 0) return false;
    if (kind.parameters.size() > 2 || kind.name == "visible")
      return false;  // len@head is no number
    return std::all_of(kind.parameters.begin(), kind.parameters.end(), [](const MaskParameter& p) {
      return p.kind == MaskParameterKind::kCount || p.kind == MaskParameterKind::kList;
    });
  }

  template <class Use>
  void each(const Use& use) const {
    if (kind_.parameters.empty()) return use(named_mask(kind_.name, {}));
    // Parts that make up the length: two numbers, or a list of two.
    if (kind_.fits == Fits::kParts || kind_.own != nullptr) {
      const Index least = kind_.own != nullptr ? 1 : 0;
      for (const Index first : numbers_) {
        if (first >= least && first <= lengths_.queries - least) {
          use(named_mask(kind_.name, texts({first, lengths_.queries - first})));
        }
      }
      return;
    }
    for (const Index first : numbers_) {
      if (first < kind_.parameters[0].least || !is_position(0, first)) continue;
      if (kind_.parameters.size() == 1) {
        use(named_mask(kind_.name, texts({first})));
        continue;
      }
      for (const Index second : numbers_) {
        if (second >= kind_.parameters[1].least && is_position(1, second))
          use(named_mask(kind_.name, texts({first, second})));
      }
    }
  }

 private:
  /// Trailing values that are their parameter's default are left out, but for offsets of masks that
  /// are not square, which must be given.
  std::vector<std::string> texts(const std::vector<Index>& values) const {
    std::size_t count = values.size();
    while (count > 0 && count <= kind_.parameters.size() && lengths_.queries == lengths_.keys &&
           kind_.parameters[count - 1].fallback &&
           *kind_.parameters[count - 1].fallback == static_cast<double>(values[count - 1])) {
      --count;
    }
    std::vector<std::string> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(std::to_string(values[i]));
    return out;
  }

  /// Lists hold positions.
  bool is_position(std::size_t parameter, Index value) const {
    return kind_.parameters[parameter].kind != MaskParameterKind::kList || value < lengths_.keys;
  }

  const MaskKind& kind_;
  Lengths lengths_;
  const std::vector<Index>& numbers_;
};

/// FNV-1a over words; collisions are distinguished by comparing.
std::uint64_t hash_of(const Sketch& sketch) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint64_t word : sketch) {
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

// Names with lists: the list is read off the mask, and the mask that it makes is then compared like
// any other candidate, so a wrong guess costs nothing.

/// Longest list worth printing.
constexpr std::size_t kMaxList = 4096;

std::vector<std::string> texts(const std::vector<Index>& numbers) {
  std::vector<std::string> out;
  out.reserve(numbers.size());
  for (const Index number : numbers) out.push_back(std::to_string(number));
  return out;
}

/// 0, 1, 2, 5 as "0-2", "5".
std::vector<std::string> ranges(const std::vector<Index>& numbers) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i >= 3) {
      out.push_back(fmt::format("{}-{}", numbers[i], numbers[end - 1]));
    } else {
      for (std::size_t at = i; at < end; ++at) out.push_back(std::to_string(numbers[at]));
    }
    i = end;
  }
  return out;
}

/// First and last visible key of a row; {0, 0} if there is none.
Range span_of(const Mask& mask, Index row) {
  const Index keys = mask.lengths().keys;
  Range span{-1, 0};
  for (Index k = 0; k < keys; k += 64) {
    const int n = static_cast<int>(std::min<Index>(64, keys - k));
    const std::uint64_t bits = mask.bits(row, k, n);
    if (bits == 0) continue;
    if (span.begin < 0) span.begin = k + __builtin_ctzll(bits);
    span.end = k + 64 - __builtin_clzll(bits);
  }
  return span.begin < 0 ? Range{0, 0} : span;
}

/// Lengths of the finest runs that no visible pair leaves.
std::vector<Index> finest_documents(const Mask& mask) {
  const Index n = mask.lengths().queries;
  // reach[i]: the farthest position that a pair from i or before binds into one run.
  std::vector<Index> reach(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    const Range span = span_of(mask, i);
    const Index low = span.size() == 0 ? i : std::min(i, span.begin);
    const Index high = span.size() == 0 ? i : std::max(i, span.end - 1);
    reach[static_cast<std::size_t>(low)] = std::max(reach[static_cast<std::size_t>(low)], high);
  }
  std::vector<Index> lengths;
  Index begin = 0;
  Index farthest = 0;
  for (Index i = 0; i < n; ++i) {
    farthest = std::max(farthest, reach[static_cast<std::size_t>(i)]);
    if (farthest > i) continue;
    lengths.push_back(i + 1 - begin);
    begin = i + 1;
  }
  return lengths;
}

/// Lengths of runs from left to right, each as long as its square is all visible (1 at least).
std::vector<Index> greedy_documents(const Mask& mask) {
  const Index n = mask.lengths().queries;
  std::vector<Index> lengths;
  for (Index begin = 0; begin < n;) {
    Index end = begin + 1;
    const auto joins = [&](Index i) {
      for (Index j = begin; j <= i; ++j) {
        if (!mask.allows(i, j) || !mask.allows(j, i)) return false;
      }
      return true;
    };
    while (end < n && joins(end)) ++end;
    lengths.push_back(end - begin);
    begin = end;
  }
  return lengths;
}

/// Positions by n_i, if these are low, low + 1, …
std::vector<Index> order_of(const Mask& mask, Index low) {
  const std::vector<Index> counts = visible_keys(mask);
  std::vector<Index> order(counts.size(), -1);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Index rank = counts[i] - low;
    if (rank < 0 || rank >= static_cast<Index>(order.size())) return {};
    Index& place = order[static_cast<std::size_t>(rank)];
    if (place >= 0) return {};
    place = static_cast<Index>(i);
  }
  return order;
}

/// K-BERT's tree: the sentence is the longest square of visible cells at the start.
std::vector<std::string> branches_of(const Mask& mask) {
  const Index n = mask.lengths().queries;
  Index sentence = n == 0 ? 0 : greedy_documents(mask).front();
  std::vector<std::string> items = {std::to_string(sentence)};
  for (Index begin = sentence; begin < n;) {
    Index head = 0;
    while (head < sentence && !mask.allows(begin, head)) ++head;
    if (head == sentence) return {};
    Index end = begin + 1;
    while (end < n && mask.allows(begin, end)) ++end;
    items.push_back(fmt::format("{}@{}", end - begin, head));
    begin = end;
  }
  return items;
}

/// Longformer's window and global positions.
std::vector<std::string> window_and_globals(const Mask& mask) {
  const Index n = mask.lengths().queries;
  const std::vector<Index> counts = visible_keys(mask);
  std::vector<bool> global(static_cast<std::size_t>(n), false);
  std::vector<std::string> items = {"0"};
  for (Index i = 0; i < n; ++i) {
    if (counts[static_cast<std::size_t>(i)] != n) continue;
    global[static_cast<std::size_t>(i)] = true;
    items.push_back(std::to_string(i));
  }
  if (items.size() == 1) return {};
  Index w = 0;
  for (Index i = 0; i < n; ++i) {
    if (global[static_cast<std::size_t>(i)]) continue;
    for (Index j = i + w + 1; j < n && mask.allows(i, j) && !global[static_cast<std::size_t>(j)];
         ++j) {
      w = j - i;
    }
  }
  items.front() = std::to_string(w);
  return items;
}

std::vector<Index> keys_where(const Mask& mask, bool by_all) {
  std::vector<Index> keys;
  const Mask wanted = by_all ? ~mask : mask;
  const auto [queries, length] = mask.lengths();
  for (Index k = 0; k < length; ++k) {
    const bool none = wanted.cover({0, queries}, {k, k + 1}) == Cover::kEmpty;
    bool any = !none;
    if (any) {  // `cover` may not know
      any = false;
      for (Index q = 0; q < queries && !any; ++q) any = wanted.allows(q, k);
    }
    if (any != by_all) keys.push_back(k);
  }
  return keys;
}

/// XLNet's partial prediction: hidden keys by the number of rows that read them, most first.
std::vector<std::string> hidden_order(const Mask& mask) {
  const Index n = mask.lengths().queries;
  std::vector<std::pair<Index, Index>> order;
  for (Index k = 0; k < n; ++k) {
    Index readers = 0;
    for (Index q = 0; q < n; ++q) readers += mask.allows(q, k) && q != k ? 1 : 0;
    if (readers < n - 1 || !mask.allows(k, k)) order.emplace_back(-readers, k);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> items;
  items.reserve(order.size());
  for (const auto& [readers, k] : order) {
    items.push_back(fmt::format("{}{}", k, mask.allows(k, k) ? "@1" : ""));
  }
  return items;
}

}  // namespace

MaskExpression named_mask(std::string_view name, const std::vector<std::string>& values) {
  std::vector<MaskArgument> arguments;
  arguments.reserve(values.size());
  for (const std::string& value : values) arguments.push_back({.name = {}, .value = value});
  return {std::string(name), std::move(arguments)};
}

SampledCells::SampledCells(Lengths lengths)
    : columns_(runs_of(lengths.keys)),
      complete_(lengths.queries <= kSample && lengths.keys <= kSample) {
  for (const Range run : runs_of(lengths.queries)) {
    for (Index i = run.begin; i < run.end; ++i) rows_.push_back(i);
  }
}

Sketch SampledCells::sketch(const Mask& mask) const {
  Sketch sketch{};
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    int shift = 0;
    for (const Range run : columns_) {
      const int n = static_cast<int>(run.size());
      if (n == 0) continue;
      sketch[i] |= mask.bits(rows_[i], run.begin, n) << shift;
      shift += n;
    }
  }
  return sketch;
}

std::vector<Index> candidate_numbers(const Mask& mask) {
  const auto [queries, keys] = mask.lengths();
  const Index longest = std::max(queries, keys);
  std::set<Index> numbers;
  if (longest <= kSample) {
    for (Index i = 0; i <= longest; ++i) numbers.insert(i);
    return {numbers.begin(), numbers.end()};
  }
  std::unordered_map<Index, int> seen;
  const auto note = [&](Index value) {
    for (Index near = value - 1; near <= value + 1; ++near) {
      if (near >= 0 && near <= longest) seen[near] += near == value ? 3 : 1;
    }
  };
  // Where the runs of a few rows and columns begin and end, how long they are, how far away.
  const auto note_runs = [&](Index line, Index length, const auto& visible) {
    Index begin = 0;
    int runs = 0;
    for (Index at = 1; at <= length && runs < 64; ++at) {
      if (at < length && visible(at) == visible(at - 1)) continue;
      note(at - begin);
      if (at < length) {
        note(at);
        note(std::abs(line - at));
      }
      begin = at;
      ++runs;
    }
  };
  for (const Index row : {Index{0}, queries / 3, queries / 2, 2 * queries / 3, queries - 1}) {
    if (row < queries) note_runs(row, keys, [&](Index k) { return mask.allows(row, k); });
  }
  for (const Index key : {Index{0}, keys / 2, keys - 1}) {
    if (key < keys) note_runs(key, queries, [&](Index q) { return mask.allows(q, key); });
  }
  std::vector<std::pair<int, Index>> order;
  order.reserve(seen.size());
  for (const auto& [value, count] : seen) order.emplace_back(-count, value);
  std::sort(order.begin(), order.end());
  if (order.size() > 64) order.resize(64);
  for (const auto& [count, value] : order) numbers.insert(value);
  numbers.insert({0, 1, 2});
  return {numbers.begin(), numbers.end()};
}

std::vector<Candidate> numbered_candidates(const Mask& mask, const SampledCells& sampling) {
  const std::vector<Index> numbers = candidate_numbers(mask);
  std::vector<Candidate> found;
  std::unordered_multimap<std::uint64_t, std::size_t> by_sketch;
  const auto add = [&](Candidate candidate) {
    if (!sampling.complete()) return found.push_back(std::move(candidate));
    const std::uint64_t hash = hash_of(candidate.sketch);
    const auto [begin, end] = by_sketch.equal_range(hash);
    for (auto at = begin; at != end; ++at) {
      Candidate& other = found[at->second];
      if (other.sketch != candidate.sketch) continue;
      if (candidate.cost < other.cost) other = std::move(candidate);
      return;
    }
    by_sketch.emplace(hash, found.size());
    found.push_back(std::move(candidate));
  };
  for (const MaskKind* kind : mask_kinds()) {
    if (!Enumerator::fits(*kind, mask.lengths())) continue;
    Enumerator(*kind, mask.lengths(), numbers).each([&](MaskExpression expression) {
      const int cost =
          100 + unfamiliarity(kind->name) + 10 * static_cast<int>(expression.arguments().size());
      const Sketch sketch = sampling.sketch(expression.bind(mask.lengths()));
      add({std::move(expression), cost, sketch});
    });
  }
  return found;
}

std::optional<MaskExpression> enclosing_documents(const Mask& mask) {
  if (mask.lengths().queries != mask.lengths().keys) return std::nullopt;
  const std::vector<Index> lengths = finest_documents(mask);
  if (lengths.size() < 2 || lengths.size() > kMaxList) return std::nullopt;
  return named_mask("document", texts(lengths));
}

std::optional<MaskExpression> enclosing_keys(const Mask& mask) {
  const std::vector<Index> keys = keys_where(mask, false);
  if (keys.empty() || static_cast<Index>(keys.size()) == mask.lengths().keys) return std::nullopt;
  if (keys.back() + 1 == static_cast<Index>(keys.size())) {
    return named_mask("pad", {std::to_string(keys.size())});
  }
  const std::vector<std::string> items = ranges(keys);
  return items.size() > kMaxList ? std::nullopt : std::optional(named_mask("keep", items));
}

std::vector<Candidate> listed_candidates(const Mask& mask, const SampledCells& sampling) {
  std::vector<Candidate> found;
  const auto add = [&](std::string_view name, const std::vector<std::string>& items) {
    if (items.empty() || items.size() > kMaxList) return;
    MaskExpression expression = named_mask(name, items);
    const int base = name == "document" ? 100 : 110;
    const int cost = base + 10 * static_cast<int>(items.size());
    const Sketch sketch = sampling.sketch(expression.bind(mask.lengths()));
    found.push_back({std::move(expression), cost, sketch});
  };
  add("keep", ranges(keys_where(mask, false)));
  add("keep", ranges(keys_where(mask, true)));
  if (mask.lengths().queries != mask.lengths().keys || mask.lengths().queries == 0) return found;
  const Mask hidden = ~mask;
  add("document", texts(finest_documents(mask)));
  add("document", texts(greedy_documents(mask)));
  for (const auto& words : {finest_documents(hidden), greedy_documents(hidden)}) {
    add("tta_word", texts(words));
    add("tta_word_l2r", texts(words));
  }
  add("perm_content", texts(order_of(mask, 1)));
  add("perm_query", texts(order_of(mask, 0)));
  add("xlnet_order", hidden_order(mask));
  add("visible", branches_of(mask));
  add("longformer", window_and_globals(mask));
  return found;
}

}  // namespace masque::mask
