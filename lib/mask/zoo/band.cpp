// Masks that depend on the distance i − j alone.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/builtin.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

namespace {

using U = std::uint64_t;

const MaskParameter kOffset{"offset", MaskParameterKind::kCount, 0.0, 0};

/// Query i stands at position i + offset. With more keys than queries it must be said.
Index offset_of(const MaskValues& v, Lengths lengths, std::string_view name) {
  if (lengths.queries != lengths.keys && !v.given("offset")) {
    throw UsageError(fmt::format("{} with {} queries and {} keys needs an offset: add offset={}",
                                 name, lengths.queries, lengths.keys,
                                 std::max<Index>(0, lengths.keys - lengths.queries)));
  }
  return v.count("offset");
}

/// Pairs with 0 ≤ i − j < w.
U causal_pairs(Index n, Index w) {
  w = std::min(n, w);
  return as_unsigned(w) * as_unsigned(w + 1) / 2 + as_unsigned(n - w) * as_unsigned(w);
}

/// Pairs with |i − j| ≤ w.
U window_pairs(Index n, Index w) {
  return n == 0 ? 0 : 2 * causal_pairs(n, w + 1) - as_unsigned(n);
}

const MaskKind kFull{"full",
                     {},
                     "1",
                     "Vaswani et al. 2017, arXiv:1706.03762",
                     "n²",
                     "full",
                     [](const MaskValues&, Lengths l) { return band(l, -kUnbounded, kUnbounded); },
                     [](const MaskValues&, Index n) { return as_unsigned(n) * as_unsigned(n); }};
const MaskRegistration kFullRegistration{kFull};

const MaskKind kCausal{
    "causal",
    {kOffset},
    "j ≤ i + offset",
    "Vaswani et al. 2017, arXiv:1706.03762",
    "n(n+1)/2",
    "causal",
    [](const MaskValues& v, Lengths l) {
      return band(l, 0, kUnbounded, offset_of(v, l, "causal"));
    },
    [](const MaskValues&, Index n) { return as_unsigned(n) * as_unsigned(n + 1) / 2; }};
const MaskRegistration kCausalRegistration{kCausal};

const MaskKind kReverse{
    "reverse",
    {kOffset},
    "j ≥ i + offset",
    "right-to-left language models; UniLM, arXiv:1905.03197",
    "n(n+1)/2",
    "reverse",
    [](const MaskValues& v, Lengths l) {
      return band(l, -kUnbounded, 0, offset_of(v, l, "reverse"));
    },
    [](const MaskValues&, Index n) { return as_unsigned(n) * as_unsigned(n + 1) / 2; }};
const MaskRegistration kReverseRegistration{kReverse};

const MaskKind kStrictCausal{"strict_causal",
                             {kOffset},
                             "j < i + offset",
                             "two-tower cloze, Baevski et al. 2019, arXiv:1903.07785",
                             "n(n−1)/2",
                             "strict_causal",
                             [](const MaskValues& v, Lengths l) {
                               return band(l, 1, kUnbounded, offset_of(v, l, "strict_causal"));
                             },
                             [](const MaskValues&, Index n) {
                               return n == 0 ? 0 : as_unsigned(n) * as_unsigned(n - 1) / 2;
                             }};
const MaskRegistration kStrictCausalRegistration{kStrictCausal};

const MaskKind kDiagonal{"diagonal",
                         {},
                         "j = i",
                         "each token reads itself only",
                         "n",
                         "diagonal",
                         [](const MaskValues&, Lengths l) { return band(l, 0, 0); },
                         [](const MaskValues&, Index n) { return as_unsigned(n); }};
const MaskRegistration kDiagonalRegistration{kDiagonal};

const MaskKind kTta{
    "tta",
    {},
    "j ≠ i",
    "T-TA, Shin et al. 2020, arXiv:2004.08097",
    "n(n−1)",
    "tta",
    [](const MaskValues&, Lengths l) { return ~band(l, 0, 0); },
    [](const MaskValues&, Index n) { return n == 0 ? 0 : as_unsigned(n) * as_unsigned(n - 1); }};
const MaskRegistration kTtaRegistration{kTta};

const MaskKind kTtaWindow{
    "tta_window",
    {{"w"}},
    "|i − j| > w",
    "Tan Huang 2021, arXiv:2111.02844",
    "(n−w−1)(n−w) for w < n",
    "tta_window(2)",
    [](const MaskValues& v, Lengths l) { return ~band(l, -v.count("w"), v.count("w")); },
    [](const MaskValues& v, Index n) {
      return as_unsigned(n) * as_unsigned(n) - window_pairs(n, v.count("w"));
    }};
const MaskRegistration kTtaWindowRegistration{kTtaWindow};

const MaskKind kWindow{
    "window",
    {{"w"}},
    "|i − j| ≤ w",
    "local attention; Longformer, arXiv:2004.05150",
    "",
    "window(3)",
    [](const MaskValues& v, Lengths l) { return band(l, -v.count("w"), v.count("w")); },
    [](const MaskValues& v, Index n) { return window_pairs(n, v.count("w")); }};
const MaskRegistration kWindowRegistration{kWindow};

const MaskKind kCausalWindow{
    "causal_window",
    {{"w", MaskParameterKind::kCount, {}, 1}, kOffset},
    "0 ≤ i + offset − j < w",
    "sliding-window attention of decoders; Mistral, arXiv:2310.06825",
    "Σ min(i+1, w)",
    "causal_window(5)",
    [](const MaskValues& v, Lengths l) {
      return band(l, 0, v.count("w") - 1, offset_of(v, l, "causal_window"));
    },
    [](const MaskValues& v, Index n) { return causal_pairs(n, v.count("w")); }};
const MaskRegistration kCausalWindowRegistration{kCausalWindow};

const MaskKind kSuper{
    "super",
    {{"L", MaskParameterKind::kCount, {}, 1}},
    "|i − j| < L",
    "super baseline of length extrapolation, kexue.fm/archives/9431",
    "",
    "super(6)",
    [](const MaskValues& v, Lengths l) { return band(l, 1 - v.count("L"), v.count("L") - 1); },
    [](const MaskValues& v, Index n) { return window_pairs(n, v.count("L") - 1); }};
const MaskRegistration kSuperRegistration{kSuper};

const MaskKind kDilated{"dilated",
                        {{"w"}, {"d", MaskParameterKind::kCount, {}, 1}},
                        "|i − j| ≤ w·d and (i − j) mod d = 0",
                        "dilated windows; Longformer, arXiv:2004.05150",
                        "",
                        "dilated(2,3)",
                        [](const MaskValues& v, Lengths l) {
                          // Beyond the lengths a larger reach changes nothing, and the product must
                          // not overflow.
                          const Index most = l.queries + l.keys;
                          const Index reach =
                              std::min(v.count("w"), most) * std::min(v.count("d"), most);
                          return band(l, -reach, reach) & modular(l, v.count("d"));
                        }};
const MaskRegistration kDilatedRegistration{kDilated};

const MaskKind kStrided{"strided",
                        {{"l", MaskParameterKind::kCount, {}, 1}},
                        "j ≤ i and (i − j < l or (i − j) mod l = 0)",
                        "Sparse Transformer, Child et al. 2019, arXiv:1904.10509",
                        "",
                        "strided(4)",
                        [](const MaskValues& v, Lengths l) {
                          return band(l, 0, v.count("l") - 1) |
                                 (band(l, 0, kUnbounded) & modular(l, v.count("l")));
                        }};
const MaskRegistration kStridedRegistration{kStrided};

}  // namespace

}  // namespace masque::mask
