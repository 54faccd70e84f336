#include "train/run/mask_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "mask/builtin.hpp"
#include "mask/flow.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"

namespace masque::train {

namespace {

constexpr Index kFollowedSequences = 32;
constexpr Index kCountedSequences = 1000;
/// Following every token costs the third power of the length.
constexpr Index kFollowedLength = 512;
/// Masks of any length are of one kind at this one.
constexpr Index kStandsForAll = 16;

/// What one stream of an example may read, layer by layer: `own` is the mask of all, if there is
/// one, else the design's count.
std::vector<mask::Mask> layers_of(const Example& example, const model::Design& design,
                                  const std::optional<mask::Mask>& own) {
  const mask::Lengths lengths{example.size(), example.size()};
  std::vector<mask::Mask> layers;
  if (own) {
    layers.assign(design.layers.size(), *own);
  } else {
    layers = model::bind_layers(design, model::own_masks(design), example.size());
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::optional<Index> window = design.layers[l].window;
    if (window) layers[l] = layers[l] & mask::band(lengths, -*window, *window);
    // Beyond the window, too.
    if (static_cast<Index>(l) >= model::first_latent_layer(design))
      layers[l] = layers[l] | model::first_key(lengths);
  }
  return layers;
}

/// Which tokens a row must not have read: its own target, and of a next token all later ones.
class Targets {
 public:
  Targets(const Example& example, Index offset)
      : offset_(offset), is_target_(example.ids.size(), false) {
    for (const Index row : example.rows) {
      if (row + offset < example.size()) is_target_[static_cast<std::size_t>(row + offset)] = true;
    }
  }
  template <class Reads>
  std::optional<Index> find(Index row, const Reads& reads) const {
    const auto end = offset_ == 0 ? row + 1 : static_cast<Index>(is_target_.size());
    for (Index token = row + offset_; token < end; ++token) {
      if (is_target_[static_cast<std::size_t>(token)] && reads(token)) return token;
    }
    return std::nullopt;
  }

 private:
  Index offset_;
  std::vector<bool> is_target_;
};

std::optional<ReadTarget> follow_example(const Example& example, const model::Design& design,
                                         const Objective& objective) {
  const Targets targets(example, *objective.target_offset(example.size()));
  const mask::FlowRequest request = flow_of(example, design);
  const std::vector<mask::Mask>& layers = request.layers;
  // Rows of towers stand next to what they predict.
  for (std::size_t l = 0; l < layers.size() && !request.towers; ++l) {
    // Layers with the same mask share it.
    if (l > 0 && layers[l].node() == layers[l - 1].node()) continue;
    for (const Index row : example.rows) {
      const auto token =
          targets.find(row, [&](Index place) { return layers[l].allows(row, place); });
      if (token) return ReadTarget{0, row, *token, fmt::format("mask of layer {}", l + 1)};
    }
  }
  if (example.size() > kFollowedLength) return std::nullopt;
  const mask::FlowResult flow = mask::follow_flow(request);
  for (const Index row : example.rows) {
    const auto token = targets.find(row, [&](Index place) { return flow.reach.get(row, place); });
    if (token) return ReadTarget{0, row, *token, "through other tokens"};
  }
  return std::nullopt;
}

std::optional<ReadTarget> follow_corpus(const model::Design& design, const Objective& objective,
                                        const Corpus& corpus) {
  // The first sequences, and one of every length.
  std::set<Index> followed;
  for (Index i = 0; i < std::min(corpus.size(), kFollowedSequences); ++i) followed.insert(i);
  const std::vector<Index> lengths = corpus.first_of_lengths();
  followed.insert(lengths.begin(), lengths.end());
  for (const Index i : followed) {
    throw_if_interrupted();
    auto found = follow_example(objective.example(corpus.item(i), 0), design, objective);
    if (!found) continue;
    found->sequence = i;
    return found;
  }
  return std::nullopt;
}

/// One place next to the rows where a target may stand.
struct Place {
  Index offset = 0;
  std::string_view name;
  Index read = 0;  ///< targets that stand there and are read
  std::optional<ReadTarget> first = {};
};

std::optional<ReadTarget> count_labels(const model::Design& design, const Objective& objective,
                                       const Corpus& corpus) {
  std::array<Place, 3> places{
      {{0, "the token at its position"}, {1, "the next token"}, {-1, "the token before"}}};
  Index rows = 0;
  for (Index i = 0; i < std::min(corpus.size(), kCountedSequences); ++i) {
    throw_if_interrupted();
    const Example example = objective.example(corpus.item(i), 0);
    if (example.rows.empty()) continue;
    const mask::Mask mask = flow_of(example, design).layers.front();
    rows += std::ssize(example.rows);
    for (std::size_t k = 0; k < example.rows.size(); ++k) {
      const Index row = example.rows[k];
      for (Place& place : places) {
        const Index token = row + place.offset;
        if (token < 0 || token >= example.size()) continue;
        if (example.ids[static_cast<std::size_t>(token)] != example.targets[k]) continue;
        const bool own = place.offset == 0 && design.streams == model::Streams::kOne;
        if (!own && !mask.allows(row, token)) continue;
        ++place.read;
        if (!place.first) place.first = ReadTarget{i, row, token, {}};
      }
    }
  }
  for (Place& place : places) {
    if (rows == 0 || place.read < rows) continue;
    place.first->path = fmt::format("every label is {}", place.name);
    return place.first;
  }
  return std::nullopt;
}

}  // namespace

mask::FlowRequest flow_of(const Example& example, const model::Design& design) {
  const bool fixed = design.streams == model::Streams::kFixedKeys;
  const bool two = design.streams == model::Streams::kTwo && example.query_mask.has_value();
  mask::FlowRequest request;
  request.layers = layers_of(example, design, two ? example.query_mask : example.mask);
  if (two) request.content = layers_of(example, design, example.mask);
  request.towers = design.streams == model::Streams::kTowers;
  request.keys = fixed ? mask::KeySource::kInput : mask::KeySource::kLayer;
  request.query = fixed || two ? mask::QueryStart::kPosition : mask::QueryStart::kToken;
  return request;
}

nn::MaskSupport mask_need(const model::Design& design) {
  if (!design.variants.masks.empty()) return nn::MaskSupport::kAny;
  switch (design.mask) {
    case model::DefaultMask::kFull: return nn::MaskSupport::kFull;
    case model::DefaultMask::kCausal: return nn::MaskSupport::kCausal;
    case model::DefaultMask::kOthers: break;
  }
  return nn::MaskSupport::kAny;
}

void set_given_masks(std::string_view masks, model::Design& design) {
  if (const auto problem = usage_error_message([&] { model::set_mask(masks, design); }))
    throw UsageError(fmt::format("{}: {}", field("mask"), *problem));
}

void check_parts_obey(const model::Design& design, std::string_view name, bool allow_leak) {
  const model::DesignMasks found = model::mask_support(design);
  if (allow_leak || found.masks <= mask_need(design)) return;
  const std::vector<mask::MaskLayer> masks = model::own_masks(design);
  throw UsageError(fmt::format("{} {}: {} obeys only the masks {}; use another, or {}", name,
                               masks.empty() ? "full" : mask::shown_layers(masks), found.part,
                               nn::masks_text(found.masks), field("allow_leak")));
}

bool ends_with_itself(std::string_view masks) {
  bool found = true;
  const auto unread = usage_error_message([&] {
    for (const mask::MaskLayer& layer : mask::parse_open_mask_layers(masks)) {
      const std::vector<Index> words(static_cast<std::size_t>(kStandsForAll), 1);
      const mask::MaskExpression closed = layer.mask.any_head().closed(words, 0);
      const mask::Lengths usual{kStandsForAll, kStandsForAll};
      const mask::Mask bound = closed.bind(closed.own_lengths().value_or(usual));
      const Index n = bound.lengths().queries;
      for (Index q = 0; q < n && found; ++q) {
        found = bound.allows(q, q);
        for (Index k = q + 1; k < n && found; ++k) found = !bound.allows(q, k);
      }
    }
  });
  return found && !unread;
}

void check_mask_lengths(const model::Design& design, const Corpus& corpus, bool shorter) {
  if (design.variants.masks.empty()) return;
  std::set<Index> lengths;
  for (const Index i : corpus.first_of_lengths()) lengths.insert(corpus.length(i));
  for (Index n = 1; shorter && n < corpus.longest(); ++n) lengths.insert(n);
  for (const mask::MaskLayer& layer : model::own_masks(design)) {
    for (const Index length : lengths) {
      const std::vector<Index> words(static_cast<std::size_t>(length), 1);
      const mask::MaskExpression mask = layer.mask.any_head().closed(words, 0);
      if (const auto problem = usage_error_message([&] { mask.bind_sequence(length); }))
        throw UsageError(fmt::format("{} {}", field("mask"), *problem));
    }
  }
}

std::optional<ReadTarget> find_read_target(const model::Design& design, const Objective& objective,
                                           const Corpus& corpus) {
  if (objective.target_offset(corpus.longest())) return follow_corpus(design, objective, corpus);
  if (corpus.labels() == LabelKind::kTokens) return count_labels(design, objective, corpus);
  return std::nullopt;
}

void refuse_read_target(std::string_view name, const model::Design& design,
                        const Objective& objective, const Corpus& corpus) {
  const auto read = find_read_target(design, objective, corpus);
  if (!read) return;
  throw UsageError(fmt::format(
      "{} {}: position {} of sequence {} can read token {}, which it predicts ({}); use a mask "
      "that hides it, or {}",
      field("objective"), name, read->row, read->sequence + 1, read->token, read->path,
      field("allow_leak")));
}

namespace {

constexpr Index kLookedAt = 32;  // sequences, of which the shortest are taken
constexpr std::size_t kSequences = 2;
constexpr Index kRows = 4;         // of a sequence
constexpr Index kFollowed = 1024;  // tokens: following costs their third power
constexpr double kTolerance = 1e-6;

/// What masks hide from the rows of an example.
class Hidden {
 public:
  Hidden(const Example& example, const model::Design& design, std::optional<Index> offset)
      : example_(example),
        offset_(offset.value_or(0)),
        shifted_(design.head.shifted),
        flow_(flow_of(example, design)) {
    if (example.size() <= kFollowed) reach_ = mask::follow_flow(flow_).reach;
  }

  /// Where a row's target stands in the input, hidden from the row; nothing if it does not.
  std::optional<Index> target(std::size_t k) const {
    const Index row = example_.rows[k];
    const Index read = shifted_ ? std::max<Index>(0, row - 1) : row;
    for (const Index place : {row + offset_, row + 1, row, row - 1}) {
      if (place < 0 || place >= example_.size() || reads(read, place)) continue;
      if (example_.ids[static_cast<std::size_t>(place)] == example_.targets[k]) return place;
    }
    return std::nullopt;
  }

 private:
  bool reads(Index row, Index place) const {
    if (reach_) return reach_->get(row, place);
    if (row == place && flow_.query == mask::QueryStart::kToken) return true;
    return std::ranges::any_of(flow_.layers,
                               [&](const mask::Mask& mask) { return mask.allows(row, place); });
  }

  const Example& example_;
  Index offset_;  ///< where the objective says that targets stand
  bool shifted_;  ///< a row's loss is of the state before it
  mask::FlowRequest flow_;
  std::optional<mask::BitMatrix> reach_;
};

/// An example with one row and its loss.
Example with_row(const Example& from, std::size_t k) {
  Example example = from;
  example.rows = {from.rows[k]};
  example.targets = {from.targets[k]};
  example.weights.clear();
  return example;
}

std::vector<float> last_state(Network<float>& network, const Example& example) {
  Matrix<float> last(1, last_width(network.design()));
  RunOutputs<float> outputs;
  outputs.last = &last;
  network.evaluate({&example, 1}, outputs);
  return {last.span().begin(), last.span().end()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

/// The shortest of the first sequences.
std::vector<Index> short_sequences(const Corpus& corpus) {
  std::vector<Index> all;
  for (Index i = 0; i < std::min(corpus.size(), kLookedAt); ++i) {
    if (corpus.length(i) >= 3) all.push_back(i);
  }
  std::ranges::stable_sort(all, {}, [&](Index i) { return corpus.length(i); });
  all.resize(std::min(all.size(), kSequences));
  return all;
}

}  // namespace

std::optional<FoundLeak> probe_leak(Network<float>& network, const Objective& objective,
                                    const Corpus& corpus) {
  network.prepare();
  const auto words = static_cast<TokenId>(network.design().vocab_size);
  for (const Index sequence : short_sequences(corpus)) {
    const Example example = objective.example(corpus.item(sequence), 0);
    const Hidden hidden(example, network.design(), objective.target_offset(example.size()));
    Index probed = 0;
    for (std::size_t k = 0; k < example.rows.size() && probed < kRows; ++k) {
      const std::optional<Index> place = hidden.target(k);
      if (!place) continue;
      ++probed;
      throw_if_interrupted();
      Example one = with_row(example, k);
      const std::vector<float> before = last_state(network, one);
      double scale = 0;
      for (const float x : before) scale = std::max(scale, std::abs(static_cast<double>(x)));
      TokenId& id = one.ids[static_cast<std::size_t>(*place)];
      for (const TokenId step : {1, words / 2}) {
        id = (id + step) % words;
        const double difference = largest_difference(before, last_state(network, one));
        if (difference > kTolerance * scale)
          return FoundLeak{sequence, one.rows[0], *place, difference};
      }
    }
  }
  return std::nullopt;
}

}  // namespace masque::train
