#include "evaluate/score/score_leak.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/block_map.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"

namespace masque::evaluate {

namespace {

using model::Streams;

constexpr Index kStandsForAll = 16;
/// Following every token costs the third power of the length.
constexpr Index kFollowed = 512;

/// A position and the token that it must not read.
using Pair = std::pair<Index, Index>;

std::string expected(ScoreKind kind) {
  return kind == ScoreKind::kCausal ? fmt::format("a causal model, or {} causal", field("mask"))
                                    : fmt::format("a T-TA, or {} input {} position {} tta",
                                                  field("kv"), field("query"), field("mask"));
}

mask::FlowRequest flow_of(ScoreKind kind, const model::Design& design,
                          const model::ModelOptions& options, Index length) {
  const bool fixed = design.streams == Streams::kFixedKeys;
  mask::FlowRequest request;
  request.keys = options.keys.value_or(fixed ? mask::KeySource::kInput : mask::KeySource::kLayer);
  request.query =
      options.query.value_or(fixed ? mask::QueryStart::kPosition : mask::QueryStart::kToken);
  request.towers = design.streams == Streams::kTowers;
  request.prediction =
      kind == ScoreKind::kCausal ? mask::Prediction::kNext : mask::Prediction::kSelf;
  std::vector<mask::MaskLayer> layers = options.masks;
  if (layers.empty()) layers = model::own_masks(design);
  request.layers = model::bind_layers(design, layers, length);
  return request;
}

/// Keys that a query must not read.
enum class ForbiddenKeys { kLater, kSame, kEarlier };

/// The first pair of a mask that is itself forbidden.
std::optional<Pair> forbidden_cell(const mask::Mask& mask, ForbiddenKeys keys) {
  std::optional<Pair> first;
  const auto found = [&](Index q, Index k) {
    if (!first || Pair(q, k) < *first) first = Pair(q, k);
  };
  mask::visit_tiles(mask, [&](mask::Range q, mask::Range k, const mask::Tile* tile) {
    for (Index i = q.begin; i < q.end; ++i) {
      const Index begin = keys == ForbiddenKeys::kSame      ? i
                          : keys == ForbiddenKeys::kEarlier ? k.begin
                                                            : std::max(i + 1, k.begin);
      const Index end = keys == ForbiddenKeys::kSame      ? i + 1
                        : keys == ForbiddenKeys::kEarlier ? std::min(i, k.end)
                                                          : k.end;
      if (begin < k.begin || begin >= std::min(end, k.end)) continue;
      if (tile == nullptr) return found(i, begin);
      const std::uint64_t bits = (*tile)[static_cast<std::size_t>(i - q.begin)] &
                                 mask::range_bits(begin, end, k.begin, static_cast<int>(k.size()));
      if (bits != 0) return found(i, k.begin + std::countr_zero(bits));
    }
  });
  return first;
}

/// The first pair that leaks, and by which path (" (…)", or nothing).
std::optional<std::pair<Pair, std::string>> follow(const mask::FlowRequest& request) {
  const bool causal = request.prediction == mask::Prediction::kNext;
  const mask::FlowResult flow = mask::follow_flow(request);
  std::string path;
  if (flow.leak) path = fmt::format(" ({})", mask::path_text(flow.leak->path, false));
  if (flow.leak && request.towers) {
    // The path ends at a row of a tower.
    const mask::FlowStep end = flow.leak->path.back();
    const bool second = end.layer > std::ssize(request.layers) / 2;
    return std::pair(Pair(end.position + (second ? -1 : 1), flow.leak->path.front().position),
                     path);
  }
  for (Index i = 0; i < flow.reach.rows(); ++i) {
    for (Index j = causal ? i + 1 : i; j < (causal ? flow.reach.columns() : i + 1); ++j) {
      if (flow.reach.get(i, j)) return std::pair(Pair(i, j), path);
    }
  }
  return std::nullopt;
}

/// Whether the first tower of two reads no later key, and the second one no earlier.
bool towers_are_clean(const mask::FlowRequest& request) {
  const std::size_t half = request.layers.size() / 2;
  for (std::size_t l = 0; l < request.layers.size(); ++l) {
    if (l % half > 0 && request.layers[l].node() == request.layers[l - 1].node()) continue;
    if (forbidden_cell(request.layers[l],
                       l < half ? ForbiddenKeys::kLater : ForbiddenKeys::kEarlier)) {
      return false;
    }
  }
  return true;
}

/// The same for any length, where the masks' cells determine it; otherwise up to kFollowed tokens.
std::optional<std::pair<Pair, std::string>> find_leak(const mask::FlowRequest& request,
                                                      Index length) {
  const bool self = request.prediction == mask::Prediction::kSelf;
  if (request.towers) {
    if (self && towers_are_clean(request)) return std::nullopt;
    if (length > kFollowed) {
      throw UsageError(fmt::format(
          "two towers: cannot check a text of {} tokens for leaks, expected at most {} tokens ({})",
          length, kFollowed, field("max_length")));
    }
    return follow(request);
  }
  const bool token = request.query == mask::QueryStart::kToken;
  if (self && token) return std::pair(Pair(0, 0), std::string());
  std::optional<Pair> cell;
  bool first_layer = false;
  for (std::size_t l = 0; l < request.layers.size() && !cell; ++l) {
    if (l > 0 && request.layers[l].node() == request.layers[l - 1].node()) continue;
    cell = forbidden_cell(request.layers[l], self ? ForbiddenKeys::kSame : ForbiddenKeys::kLater);
    first_layer = l == 0;
  }
  // Keys that hold their own token: what a cell lets through arrives.
  if (cell && (token || request.keys == mask::KeySource::kInput || first_layer))
    return std::pair(*cell, std::string());
  // What only reads backwards brings nothing forward; keys that hold nothing else bring nothing
  // else.
  if (!cell && (!self || request.keys == mask::KeySource::kInput)) return std::nullopt;
  if (length > kFollowed) {
    throw UsageError(fmt::format(
        "{} position with {} layer: cannot check a text of {} tokens for leaks, expected at most "
        "{} tokens ({}), or {} input",
        field("query"), field("kv"), length, kFollowed, field("max_length"), field("kv")));
  }
  return follow(request);
}

}  // namespace

ScoreLeak::ScoreLeak(ScoreKind kind, const model::Design& design,
                     const model::ModelOptions& options)
    : kind_(kind),
      name_(fmt::format("{} {}", field("kind"), kind_name(kind))),
      design_(design),
      options_(options) {
  if (options_.masks.empty() && !design.variants.masks.empty())
    options_.masks = model::own_masks(design);
}

bool ScoreLeak::open() const {
  return std::ranges::any_of(options_.masks,
                             [](const mask::MaskLayer& layer) { return layer.mask.open(); });
}

mask::Mask ScoreLeak::close(std::span<const Index> words) const {
  Index length = 0;
  for (const Index word : words) length += word;
  model::ModelOptions closed = options_;
  closed.masks = {{1, model::open_mask(design_, options_.masks).value().closed(words, 0)}};
  refuse(closed.masks, find_leak(flow_of(kind_, design_, closed, length), length), length);
  return closed.masks.front().mask.bind({length, length});
}

void ScoreLeak::start() const {
  const model::DesignMasks found = model::mask_support(design_);
  const bool causal = kind_ == ScoreKind::kCausal;
  if (found.masks > (causal ? nn::MaskSupport::kCausal : nn::MaskSupport::kAny)) {
    throw InputError(
        fmt::format("{}: {} of this model supports only the masks {}, so a position reads "
                    "tokens that it must not read, expected another model",
                    name_, found.part, nn::masks_text(found.masks)));
  }
  if (!options_.masks.empty()) return;
  const auto leak = follow(flow_of(kind_, design_, options_, kStandsForAll));
  if (!leak) return;
  const auto& [pair, path] = *leak;
  throw InputError(fmt::format("{}: position {} of this model reads token {}{}, expected {}", name_,
                               pair.first, pair.second, path, expected(kind_)));
}

void ScoreLeak::refuse(const std::vector<mask::MaskLayer>& masks,
                       const std::optional<MaskedPath>& leak, Index length) const {
  if (!leak) return;
  const auto& [pair, path] = *leak;
  throw UsageError(
      fmt::format("{} {} '{}': in a text of {} tokens position {} reads token {}{}, expected {}",
                  name_, field("mask"), mask::shown_layers(masks), length, pair.first, pair.second,
                  path, expected(kind_)));
}

void ScoreLeak::at(Index length) {
  if (options_.masks.empty() || open() || length == 0 || clean_.contains(length)) return;
  for (const mask::MaskLayer& layer : options_.masks) {
    // The model itself refuses a text that a mask is not made for.
    const auto own = layer.mask.own_lengths();
    if (own && *own != mask::Lengths{length, length}) return;
  }
  refuse(options_.masks, find_leak(flow_of(kind_, design_, options_, length), length), length);
  clean_.insert(length);
}

}  // namespace masque::evaluate
