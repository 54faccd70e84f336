#include "mask/identify.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

#include "mask/candidates.hpp"

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

}  // namespace masque::mask
