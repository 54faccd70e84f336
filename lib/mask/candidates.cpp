#include "mask/candidates.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "mask/zoo.hpp"

namespace masque::mask {

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

}  // namespace masque::mask
