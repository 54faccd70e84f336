#include "grow/width_rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"

namespace masque::grow {

namespace {

/// Divides weights by their sum over the copies of an element.
void share_by(UnitCopies& units, std::vector<double> weights) {
  const Index elements =
      units.from.empty() ? 0 : *std::max_element(units.from.begin(), units.from.end()) + 1;
  std::vector<double> sums(static_cast<std::size_t>(elements), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i)
    sums[static_cast<std::size_t>(units.from[i])] += weights[i];
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] /= sums[static_cast<std::size_t>(units.from[i])];
  units.share = std::move(weights);
}

using model::Design;
using model::Role;

/// What an axis of a tensor counts.
enum class Unit { kKept, kHidden, kEmbedding, kHeads, kKeyHeads, kInner };

/// Units along an axis, and elements of each.
struct Axis {
  Unit unit = Unit::kKept;
  Index block = 1;
};

/// What the head's transform gives to its norm and its vocabulary.
Axis head_axis(const Design& design) {
  const bool hidden = role_shape(design, Role::kHeadNorm).columns == design.hidden_size;
  return {hidden ? Unit::kHidden : Unit::kEmbedding, 1};
}

/// Rows of a weight: outputs.
Axis row_axis(const Design& design, Role role) {
  switch (role) {
    case Role::kQuery:
    case Role::kRelative:
    case Role::kPositionKey:
    case Role::kPositionQuery:
    case Role::kGlobalQuery:
    case Role::kGlobalKey:
    case Role::kGlobalValue: return {Unit::kHeads, design.head_size};
    case Role::kKey: return {Unit::kKeyHeads, design.head_size};
    case Role::kValue: return {Unit::kKeyHeads, model::head_value_size(design)};
    case Role::kUp:
    case Role::kGate: return {Unit::kInner, 1};
    case Role::kOutput:
    case Role::kDown:
    case Role::kConvolution:
    case Role::kEmbeddingProjection:
    case Role::kLatentOutput: return {Unit::kHidden, 1};
    case Role::kHeadTransform: return head_axis(design);
    case Role::kTalkingBefore:
    case Role::kTalkingAfter: return {Unit::kHeads, 1};
    default: return {};
  }
}

/// Columns: inputs, or the elements of a table's row.
Axis column_axis(const Design& design, Role role) {
  switch (role) {
    case Role::kOutput:
      if (design.layer_kind == model::LayerKind::kGatedAttention) return {Unit::kInner, 1};
      return {Unit::kHeads, model::head_value_size(design)};
    case Role::kDown:
    case Role::kFeedForwardInnerNorm: return {Unit::kInner, 1};
    case Role::kConvolution: return {Unit::kHidden, design.convolution_size};
    case Role::kContentBias:
    case Role::kPositionBias:
    case Role::kSegmentBias:
    case Role::kLayerSegmentTable: return {Unit::kHeads, design.head_size};
    case Role::kTalkingBefore:
    case Role::kTalkingAfter:
    case Role::kHeadScale:
    case Role::kScoreScale: return {Unit::kHeads, 1};
    case Role::kQueryNorm:
      if (design.query_key_norm == model::QueryKeyNorm::kHead) return {};
      return {Unit::kHeads, design.head_size};
    case Role::kKeyNorm:
      if (design.query_key_norm == model::QueryKeyNorm::kHead) return {};
      return {Unit::kKeyHeads, design.head_size};
    case Role::kRelativeTable:
      if (design.position == model::PositionType::kT5) return {Unit::kHeads, 1};
      return {Unit::kHidden, 1};
    case Role::kDecoder:
    case Role::kHeadNorm: return head_axis(design);
    case Role::kEmbeddingProjection:
    case Role::kEmbeddingNorm:
    case Role::kWordTable:
    case Role::kSegmentTable:
    case Role::kQueryStart: return {Unit::kEmbedding, 1};
    case Role::kPositionTable:
      return {design.positions_after_projection ? Unit::kHidden : Unit::kEmbedding, 1};
    case Role::kGatedGamma:
    case Role::kGatedBeta:
    case Role::kAttentionScale:
    case Role::kFeedForwardScale:
    case Role::kLatentOutput:
    case Role::kLatentKappa: return {};
    default: return {Unit::kHidden, 1};
  }
}

/// Whether the columns are inputs, whose copies share the weight; else the tensor holds states.
bool reads_columns(Role role) {
  return role <= Role::kDecoder || role == Role::kTalkingBefore || role == Role::kTalkingAfter ||
         role == Role::kLatentInput || model::is_global(role);
}

/// Copies of `before` units as the rule has them. `purpose` and `layer` name the draw.
UnitCopies copied(const WidthSettings& settings, Index before, Index after,
                  std::string_view purpose, Index layer) {
  if (before == after) return kept_units(before);
  return drawn_units(before, after,
                     RandomStream(settings.seed, purpose, static_cast<std::uint64_t>(layer)));
}

UnitCopies copied_heads(const WidthSettings& settings, bool keys, Index layer) {
  const Design& before = settings.before;
  // One table of biases for the heads of all layers.
  if (before.position == model::PositionType::kT5) layer = 0;
  UnitCopies key_heads = copied(settings, before.num_key_value_heads,
                                settings.after.num_key_value_heads, "heads", layer);
  const Index group = before.num_attention_heads / before.num_key_value_heads;
  return keys || group == 1 ? key_heads : in_blocks(key_heads, group);
}

UnitCopies units_of(const WidthSettings& settings, const Axis& axis, Index layer) {
  const Design& before = settings.before;
  const Design& after = settings.after;
  switch (axis.unit) {
    case Unit::kHidden: return hidden_units(settings);
    case Unit::kEmbedding:
      if (before.embedding_size == before.hidden_size) return hidden_units(settings);
      return kept_units(before.embedding_size);
    case Unit::kHeads: return copied_heads(settings, false, layer);
    case Unit::kKeyHeads: return copied_heads(settings, true, layer);
    case Unit::kInner:
      return copied(settings, before.intermediate_size, after.intermediate_size,
                    "feed-forward units", layer);
    case Unit::kKept: break;
  }
  MASQUE_CHECK(false);
  return {};
}

/// An axis of `before` elements. Two towers have the states of both, side by side.
UnitCopies grown_axis(const WidthSettings& settings, const Axis& axis, Index before, Index layer) {
  if (axis.unit == Unit::kKept) return kept_units(before);
  const UnitCopies elements = in_blocks(units_of(settings, axis, layer), axis.block);
  Index own = 0;
  for (const Index from : elements.from) own = std::max(own, from + 1);
  MASQUE_CHECK(own > 0 && before % own == 0);
  UnitCopies all;
  for (Index begin = 0; begin < before; begin += own) append_units(all, elements, begin);
  return all;
}

/// Rows of a part of a tensor: outputs of a dense layer, or elements of its bias.
UnitCopies grown_rows(const WidthSettings& settings, const model::TensorPart& part) {
  const Index before = role_shape(settings.before, part.role, part.part).rows;
  UnitCopies units;
  if (part.role == Role::kGatedInput) {
    // u, v, then z, whose size stays.
    const Index fixed = settings.before.attention_key_size;
    units = grown_axis(settings, {Unit::kInner, 1}, before - fixed, part.layer);
    append_units(units, kept_units(fixed), before - fixed);
  } else {
    units = grown_axis(settings, row_axis(settings.before, part.role), before, part.layer);
  }
  MASQUE_CHECK(units.size() == role_shape(settings.after, part.role, part.part).rows);
  return units;
}

UnitCopies grown_columns(const WidthSettings& settings, const model::TensorPart& part) {
  UnitCopies units =
      grown_axis(settings, column_axis(settings.before, part.role),
                 role_shape(settings.before, part.role, part.part).columns, part.layer);
  MASQUE_CHECK(units.size() == role_shape(settings.after, part.role, part.part).columns);
  return units;
}

/// Dense layers that every layer has: a next one too.
bool is_in_layers(Role role) { return role <= Role::kGatedInput && role != Role::kConvolution; }

/// Marks the second and further copies of every element.
void take_copies_from_next(UnitCopies& units) {
  std::vector<bool> seen;
  for (const Index from : units.from) {
    const auto at = static_cast<std::size_t>(from);
    if (at >= seen.size()) seen.resize(at + 1, false);
    units.next.push_back(seen[at]);
    seen[at] = true;
  }
}

[[noreturn]] void refuse(const std::string& why) {
  throw UsageError(fmt::format("cannot make this model wider: {}", why));
}

void check_positions(const Design& design) {
  switch (design.position) {
    case model::PositionType::kSinusoidal:
      refuse(
          "sinusoidal positions cannot be copied to another width; expected learned positions, "
          "RoPE or biases");
    case model::PositionType::kXlnet:
      refuse("XLNet's relative positions cannot be copied to another width");
    default: break;
  }
  if (design.variants.softmax_heads > 0)
    refuse("talking heads with another number of softmax heads cannot be copied");
  if (design.variants.value_heads > 0)
    refuse("talking heads with another number of value heads cannot be copied");
  if (design.variants.position.empty()) return;
  const nn::PositionFacts facts = model::position_scheme(design)->facts();
  if (facts.input || facts.scores || facts.weights || facts.values ||
      !model::position_parameters(design).empty()) {
    refuse(
        fmt::format("position {} has terms for each head or column; expected one that depends only "
                    "on queries and keys, like rope",
                    design.variants.position.text()));
  }
}

bool has_tied_vocabulary(const Design& design) {
  const model::HeadKind kind = design.head.kind;
  return (kind == model::HeadKind::kMasked || kind == model::HeadKind::kCausal) && design.head.tied;
}

}  // namespace

NameTable<WidthRule> width_rules() {
  static constexpr std::array<std::pair<std::string_view, WidthRule>, 4> kNames{
      {{"equal", WidthRule::kEqual},
       {"unequal", WidthRule::kUnequal},
       {"fpi", WidthRule::kFpi},
       {"aki", WidthRule::kAki}}};
  return kNames;
}

bool needs_whole_factor(WidthRule rule) {
  return rule == WidthRule::kEqual || rule == WidthRule::kUnequal;
}

Index wider_size(Index size, double factor, std::string_view name) {
  const double wider = static_cast<double>(size) * factor;
  const double whole = std::round(wider);
  if (std::abs(wider - whole) > 1e-6) {
    throw UsageError(fmt::format("{} {}: {} {} would be {:g}, expected a whole number",
                                 field("factor"), factor, name, size, wider));
  }
  return static_cast<Index>(whole);
}

UnitCopies hidden_units(const WidthSettings& settings) {
  return copied(settings, settings.before.hidden_size, settings.after.hidden_size, "hidden states",
                0);
}

std::optional<DividedNorm> divided_norm(const Design& design) {
  if (!has_tied_vocabulary(design) || design.embedding_size != design.hidden_size)
    return std::nullopt;
  if (design.head.norm) return DividedNorm{Role::kHeadNorm, 0};
  if (design.head.transform)
    refuse(
        "the tied vocabulary reads an activation, not a norm that can be divided; expected an "
        "untied one");
  if (!design.norm_weights)
    refuse(
        "the tied vocabulary reads a norm without weights, which cannot be divided; expected an "
        "untied one");
  if (design.norm.weight_offset != 0)
    refuse(
        "the tied vocabulary reads a norm whose weights are stored less a number, which cannot be "
        "divided; expected an untied one");
  if (design.final_norm) return DividedNorm{Role::kFinalNorm, 0};
  const Index last = design.layers.back().weights;
  const bool shared = std::ranges::count_if(design.layers, [&](const model::LayerDesign& layer) {
                        return layer.weights == last;
                      }) > 1;
  if (!norms_sum(design.norm_placement) || shared)
    refuse("no norm before the tied vocabulary can be divided; expected an untied one");
  const bool gated = design.layer_kind == model::LayerKind::kGatedAttention;
  return DividedNorm{gated ? Role::kAttentionNorm : Role::kFeedForwardNorm, last};
}

Design wider_design(const Design& design, double factor, WidthRule rule) {
  if (factor <= 1 || (needs_whole_factor(rule) && factor != std::floor(factor))) {
    throw UsageError(fmt::format("{} {}, expected {} above 1", field("factor"), factor,
                                 needs_whole_factor(rule) ? "a whole number" : "a number"));
  }
  check_positions(design);
  if (design.variants.mixer != nullptr)
    refuse(fmt::format("mixer {}, expected attention", model::mixer_name(design)));
  if (design.variants.detector) refuse("a detector, expected a model without");
  if (design.experts) refuse("mixtures of experts, expected feed-forward layers");
  if (std::ranges::any_of(model::own_masks(design),
                          [](const mask::MaskLayer& layer) { return !layer.mask.heads().empty(); }))
    refuse("masks that differ between heads, expected one mask for all heads");
  static_cast<void>(divided_norm(design));
  Design wider = design;
  wider.hidden_size = wider_size(design.hidden_size, factor, "hidden size");
  wider.intermediate_size = wider_size(design.intermediate_size, factor, "intermediate size");
  if (wider.hidden_size == design.hidden_size)
    throw UsageError(
        fmt::format("{} {} does not change the width, expected more", field("factor"), factor));
  if (design.embedding_size == design.hidden_size) wider.embedding_size = wider.hidden_size;
  if (design.layer_kind == model::LayerKind::kTransformer) {
    wider.num_attention_heads = wider_size(design.num_attention_heads, factor, "attention heads");
    wider.num_key_value_heads = wider_size(design.num_key_value_heads, factor, "key-value heads");
  }
  return wider;
}

TensorGrowth grow_tensor(const WidthSettings& settings, const model::PlacedTensor& tensor,
                         const std::string& name) {
  TensorGrowth growth;
  const Role first = tensor.parts.front().role;
  growth.transposed = tensor.layout == model::TensorLayout::kInOut;
  growth.shape = tensor.shape;
  if (settings.after.hidden_size == settings.before.hidden_size) {
    growth.rows = kept_units(tensor.rows);
    growth.columns = kept_units(tensor.columns);
    return growth;
  }
  if (tensor.layout == model::TensorLayout::kNextColumns)
    refuse("norms of queries and keys have a tensor for each head");
  const std::optional<DividedNorm> divided = divided_norm(settings.before);
  const model::TensorPart& part = tensor.parts.front();
  // A norm, its bias, or one state: no outputs.
  if (tensor.vector && (!tensor.bias || model::is_norm(first))) {
    growth.rows = kept_units(1);
    growth.columns = grown_columns(settings, part);
  } else {
    UnitCopies outputs;
    Index begin = 0;
    for (const model::TensorPart& own : tensor.parts) {
      UnitCopies rows = grown_rows(settings, own);
      if (settings.rule == WidthRule::kAki && is_in_layers(first)) take_copies_from_next(rows);
      append_units(outputs, rows, begin);
      begin += role_shape(settings.before, own.role, own.part).rows;
    }
    if (tensor.layout == model::TensorLayout::kHeadGroups) {
      if (settings.before.num_key_value_heads != settings.before.num_attention_heads)
        refuse("its queries are stored in groups with a key and a value");
      // Query, key and value of each head in turn.
      outputs = in_blocks(copied_heads(settings, false, part.layer), 3 * settings.before.head_size);
      if (settings.rule == WidthRule::kAki) take_copies_from_next(outputs);
    }
    if (tensor.bias) {
      growth.rows = kept_units(1);
      growth.columns = std::move(outputs);
    } else {
      growth.rows = std::move(outputs);
      growth.columns = grown_columns(settings, part);
    }
  }
  if (!tensor.bias && reads_columns(first) && growth.columns.size() != tensor.columns) {
    if (settings.rule == WidthRule::kUnequal) {
      share_unequally(growth.columns, RandomStream(settings.seed, name));
    } else {
      share_equally(growth.columns);
    }
  }
  if (divided && first == divided->role && part.layer == divided->layer) {
    share_equally(growth.columns);
    // T5 divides by the root of the hidden size, too.
    growth.scale = settings.before.head.scale / settings.after.head.scale;
  }
  if (tensor.vector) {
    const auto before = static_cast<std::uint64_t>(tensor.columns);
    const auto after = static_cast<std::uint64_t>(growth.columns.size());
    const auto whole = std::ranges::find(growth.shape, before);
    // Norms of each head are stored as [heads, head_size].
    std::uint64_t& size = whole == growth.shape.end() ? growth.shape.front() : *whole;
    size = size * after / before;
  } else {
    const std::size_t out = growth.transposed ? 1 : 0;
    if (growth.shape.size() == 2) {
      growth.shape[out] = static_cast<std::uint64_t>(growth.rows.size());
    } else {
      growth.shape[out] = growth.shape[out] * static_cast<std::uint64_t>(growth.rows.size()) /
                          static_cast<std::uint64_t>(tensor.rows);
    }
    // The third size stays: of a convolution's kernel, or of a head.
    growth.shape[1 - out] = growth.shape[1 - out] *
                            static_cast<std::uint64_t>(growth.columns.size()) /
                            static_cast<std::uint64_t>(tensor.columns);
  }
  return growth;
}

UnitCopies kept_units(Index count) {
  UnitCopies units;
  units.from.resize(static_cast<std::size_t>(count));
  std::iota(units.from.begin(), units.from.end(), Index{0});
  return units;
}

UnitCopies repeated_units(Index count, Index factor) {
  MASQUE_CHECK(factor >= 1);
  UnitCopies units;
  units.from.reserve(static_cast<std::size_t>(count * factor));
  for (Index unit = 0; unit < count; ++unit)
    units.from.insert(units.from.end(), static_cast<std::size_t>(factor), unit);
  return units;
}

UnitCopies drawn_units(Index count, Index after, const RandomStream& stream) {
  MASQUE_CHECK(count >= 1 && after >= count);
  UnitCopies units = repeated_units(count, after / count);
  Draw draw(stream);
  const std::vector<Index> order = random_order(count, draw);
  units.from.insert(units.from.end(), order.begin(), order.begin() + after % count);
  std::ranges::sort(units.from);
  return units;
}

UnitCopies in_blocks(const UnitCopies& units, Index block) {
  UnitCopies elements;
  elements.from.reserve(static_cast<std::size_t>(units.size() * block));
  for (const Index unit : units.from) {
    for (Index i = 0; i < block; ++i) elements.from.push_back(unit * block + i);
  }
  return elements;
}

void append_units(UnitCopies& units, const UnitCopies& below, Index first) {
  MASQUE_CHECK(units.share.empty() && below.share.empty());
  for (const Index from : below.from) units.from.push_back(first + from);
  if (units.next.empty() && below.next.empty()) return;
  const auto above = units.from.size() - below.from.size();
  units.next.resize(above, false);
  units.next.insert(units.next.end(), below.next.begin(), below.next.end());
  units.next.resize(units.from.size(), false);
}

void share_equally(UnitCopies& units) {
  share_by(units, std::vector<double>(units.from.size(), 1.0));
}

void share_unequally(UnitCopies& units, const RandomStream& stream) {
  Draw draw(stream);
  // Draws in 0.5 … 1.5: none is more than three times another.
  std::vector<double> weights(units.from.size());
  for (double& weight : weights) weight = 0.5 + draw.uniform();
  share_by(units, std::move(weights));
}

}  // namespace masque::grow
