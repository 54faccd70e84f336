#include "grow/width_rules.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/variants.hpp"

namespace masque::grow {

namespace {

using model::Design;
using model::Role;

/// Elements of a unit along the rows and the columns of a role's weight.
struct Blocks {
  Index rows = 1;
  Index columns = 1;
};

Blocks blocks_of(const Design& design, Role role) {
  const Index value = model::head_value_size(design);
  switch (role) {
    case Role::kQuery:
    case Role::kKey:
    case Role::kRelative:
    case Role::kPositionKey:
    case Role::kPositionQuery: return {design.head_size, 1};
    case Role::kValue: return {value, 1};
    case Role::kOutput:
      return {1, design.layer_kind == model::LayerKind::kGatedAttention ? 1 : value};
    case Role::kConvolution: return {1, design.convolution_size};
    case Role::kContentBias:
    case Role::kPositionBias:
    case Role::kSegmentBias:
    case Role::kLayerSegmentTable: return {1, design.head_size};
    default: return {};
  }
}

/// Whether the columns are inputs, whose copies share the weight; else the tensor holds states.
bool reads_columns(Role role) {
  return role <= Role::kDecoder || role == Role::kTalkingBefore || role == Role::kTalkingAfter;
}

UnitCopies grown_axis(Index before, Index after, Index block, Index factor) {
  if (before == after) return kept_units(before);
  MASQUE_CHECK(after == before * factor);
  return repeated_units(before, block, factor);
}

/// Rows of a part of a tensor: outputs of a dense layer, or elements of its bias.
UnitCopies grown_rows(const WidthSettings& settings, Role role, Index part) {
  const Index before = role_shape(settings.before, role, part).rows;
  const Index after = role_shape(settings.after, role, part).rows;
  if (role == Role::kGatedInput) {
    // u, v, then z, whose size stays.
    const Index fixed = settings.before.attention_key_size;
    UnitCopies units = repeated_units(before - fixed, 1, settings.factor);
    append_units(units, kept_units(fixed), before - fixed);
    MASQUE_CHECK(units.size() == after);
    return units;
  }
  return grown_axis(before, after, blocks_of(settings.before, role).rows, settings.factor);
}

UnitCopies grown_columns(const WidthSettings& settings, Role role, Index part) {
  return grown_axis(role_shape(settings.before, role, part).columns,
                    role_shape(settings.after, role, part).columns,
                    blocks_of(settings.before, role).columns, settings.factor);
}

[[noreturn]] void refuse(const std::string& why) {
  throw UsageError(fmt::format("no wider model: {}", why));
}

void check_positions(const Design& design) {
  switch (design.position) {
    case model::PositionType::kSinusoidal:
      refuse(
          "sinusoidal positions of another width are no copies; expected a table, RoPE or biases");
    case model::PositionType::kXlnet:
      refuse("XLNet's relative positions of another width are no copies");
    default: break;
  }
  if (design.variants.position.empty()) return;
  const nn::PositionFacts facts = model::position_scheme(design)->facts();
  if (facts.input || facts.scores || facts.weights || facts.values ||
      !model::position_parameters(design).empty()) {
    refuse(
        fmt::format("position {} has terms of each head or column; expected one of queries and "
                    "keys alone, as rope",
                    design.variants.position));
  }
}

bool has_tied_vocabulary(const Design& design) {
  const model::HeadKind kind = design.head.kind;
  return (kind == model::HeadKind::kMasked || kind == model::HeadKind::kCausal) && design.head.tied;
}

}  // namespace

NameTable<WidthRule> width_rules() {
  static constexpr std::array<std::pair<std::string_view, WidthRule>, 2> kNames{
      {{"equal", WidthRule::kEqual}, {"unequal", WidthRule::kUnequal}}};
  return kNames;
}

std::optional<DividedNorm> divided_norm(const Design& design) {
  if (!has_tied_vocabulary(design) || design.embedding_size != design.hidden_size)
    return std::nullopt;
  if (design.head.norm) return DividedNorm{Role::kHeadNorm, 0};
  if (design.head.transform)
    refuse(
        "the tied vocabulary reads an activation, which no norm can divide; expected an untied "
        "one");
  if (!design.norm_weights)
    refuse(
        "the tied vocabulary reads a norm without weights, which cannot divide; expected an untied "
        "one");
  if (design.final_norm) return DividedNorm{Role::kFinalNorm, 0};
  const Index last = design.layers.back().weights;
  const bool shared = std::ranges::count_if(design.layers, [&](const model::LayerDesign& layer) {
                        return layer.weights == last;
                      }) > 1;
  if (design.norm_placement != model::NormPlacement::kPost || shared)
    refuse("the tied vocabulary reads no norm of its own; expected an untied one");
  const bool gated = design.layer_kind == model::LayerKind::kGatedAttention;
  return DividedNorm{gated ? Role::kAttentionNorm : Role::kFeedForwardNorm, last};
}

Design wider_design(const Design& design, Index factor) {
  check_positions(design);
  if (!design.variants.mixer.empty())
    refuse(fmt::format("mixer {}, expected attention", design.variants.mixer));
  if (design.variants.detector) refuse("a detector, expected a model without");
  static_cast<void>(divided_norm(design));
  Design wider = design;
  wider.hidden_size *= factor;
  wider.intermediate_size *= factor;
  if (design.embedding_size == design.hidden_size) wider.embedding_size *= factor;
  if (design.layer_kind == model::LayerKind::kTransformer) {
    wider.num_attention_heads *= factor;
    wider.num_key_value_heads *= factor;
  }
  return wider;
}

TensorGrowth grow_tensor(const WidthSettings& settings, const model::PlacedTensor& tensor,
                         const std::string& name) {
  TensorGrowth growth;
  const Role first = tensor.parts.front().role;
  const std::optional<DividedNorm> divided =
      settings.factor > 1 ? divided_norm(settings.before) : std::nullopt;
  // A norm, its bias, or one state: no outputs.
  if (tensor.vector && (!tensor.bias || model::is_norm(first))) {
    growth.rows = kept_units(1);
    growth.columns = grown_columns(settings, first, tensor.parts.front().part);
  } else {
    UnitCopies outputs;
    Index begin = 0;
    for (const model::TensorPart& part : tensor.parts) {
      append_units(outputs, grown_rows(settings, part.role, part.part), begin);
      begin += role_shape(settings.before, part.role, part.part).rows;
    }
    if (tensor.layout == model::TensorLayout::kHeadTriples)
      outputs = repeated_units(begin, 3 * settings.before.head_size, settings.factor);
    if (tensor.bias) {
      growth.rows = kept_units(1);
      growth.columns = std::move(outputs);
    } else {
      growth.rows = std::move(outputs);
      growth.columns = grown_columns(settings, first, tensor.parts.front().part);
    }
  }
  if (!tensor.bias && reads_columns(first) && growth.columns.size() != tensor.columns) {
    if (settings.rule == WidthRule::kEqual) {
      share_equally(growth.columns, settings.factor);
    } else {
      share_unequally(growth.columns, settings.factor, RandomStream(settings.seed, name));
    }
  }
  if (divided && first == divided->role && tensor.parts.front().layer == divided->layer) {
    // T5 divides by the root of the hidden size, too.
    growth.scale = settings.before.head.scale / settings.after.head.scale /
                   static_cast<double>(settings.factor);
  }
  growth.transposed = tensor.layout == model::TensorLayout::kInOut;
  growth.shape = tensor.shape;
  if (tensor.vector) {
    for (std::uint64_t& size : growth.shape) {
      if (size == static_cast<std::uint64_t>(tensor.columns))
        size = static_cast<std::uint64_t>(growth.columns.size());
    }
  } else {
    const std::size_t out = growth.transposed ? 1 : 0;
    if (growth.shape.size() == 2) {
      growth.shape[out] = static_cast<std::uint64_t>(growth.rows.size());
    } else {
      growth.shape[out] *= static_cast<std::uint64_t>(growth.rows.size() / tensor.rows);
    }
    // The third size stays: of a convolution's kernel, or of a head.
    growth.shape[1 - out] *= static_cast<std::uint64_t>(growth.columns.size() / tensor.columns);
  }
  return growth;
}

}  // namespace masque::grow
