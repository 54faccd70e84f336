#include "model/detector.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layer_list.hpp"
#include "model/masque_rows.hpp"
#include "model/rotary_config.hpp"
#include "model/variants.hpp"

namespace masque::model {

namespace {

// As of any model of the family (family/masque.cpp).
constexpr Index kWidestDetector = 1 << 20;
constexpr Index kMostDetectorHeads = 1 << 16;

[[noreturn]] void refuse_detector(std::string_view what) {
  throw UsageError(fmt::format("a detector with {}", what));
}

void check_softly_masked(const Design& design) {
  if (design.streams != Streams::kOne)
    refuse_detector("several streams, expected a model with one stream");
  if (design.mask != DefaultMask::kFull || !design.variants.masks.empty())
    refuse_detector("a mask, expected full attention");
  if (!design.mask_token_id || *design.mask_token_id < 0 ||
      *design.mask_token_id >= design.vocab_size)
    refuse_detector("no mask token, expected mask_token_id");
  if (design.convolution_size > 0)
    refuse_detector("a convolution, expected a model without convolution");
  if (design.normalizer.is_list() || design.variants.position.is_list())
    refuse_detector("lists of normalizers or positions by layer, expected one for all layers");
  const auto scheme = position_scheme(design);
  if (scheme != nullptr && scheme->facts().input) {
    refuse_detector(fmt::format("position {}, which acts on the input, expected another position",
                                scheme->name()));
  }
  switch (design.position) {
    case PositionType::kXlnet:
    case PositionType::kT5:
    case PositionType::kDisentangled:
      refuse_detector(
          fmt::format("{} positions, expected another kind", own_position(design.position).spoken));
    default: break;
  }
}

// Checkpoints of transformers have frequencies that were made in float.
constexpr double kAngleTolerance = 1e-6;

/// Angles of heads of another size, with the same base.
RotaryDesign resized_rotary(const RotaryDesign& rotary, Index size) {
  if (size % 2 != 0)
    refuse_detector(fmt::format("rotary positions and head size {}, expected an even size", size));
  const auto base = rotary_base(rotary.frequencies, kAngleTolerance);
  if (!base) {
    refuse_detector(fmt::format(
        "head size {} and scaled rotary positions, expected the model's head size", size));
  }
  return plain_rotary(rotary.layout, *base, size);
}

void set_detector_layers(const Design& model, Design& design) {
  LayerDesign layer;
  if (design.position == PositionType::kRotary && !model.layers.empty()) {
    layer.rotary = model.layers[0].rotary;
    if (design.head_size != model.head_size)
      layer.rotary = resized_rotary(layer.rotary, design.head_size);
  }
  design.layers.clear();
  for (Index l = 0; l < design.num_hidden_layers; ++l) {
    layer.weights = l;
    design.layers.push_back(layer);
  }
}

}  // namespace

Design detector_design(const Design& design) {
  MASQUE_CHECK(design.variants.detector.has_value());
  check_softly_masked(design);
  const DetectorDesign& own = *design.variants.detector;
  const bool gated = design.layer_kind == LayerKind::kGatedAttention;
  if (own.num_hidden_layers < 1 || own.hidden_size < 1 || own.hidden_size > kWidestDetector ||
      own.num_attention_heads < 1 || own.num_attention_heads > kMostDetectorHeads ||
      own.intermediate_size < 1 || own.hidden_size % own.num_attention_heads != 0 ||
      (gated && own.num_attention_heads != 1)) {
    refuse_detector(fmt::format(
        "{} layers, hidden size {}, {} heads and intermediate size {}, expected sizes of at least "
        "1 and a number of heads that divides the hidden size",
        own.num_hidden_layers, own.hidden_size, own.num_attention_heads, own.intermediate_size));
  }
  Design detector = design;
  detector.notes.clear();
  detector.missing_head.clear();
  detector.variants.detector.reset();
  detector.variants.input_residual = true;
  detector.variants.late_positions = 0;
  detector.embedding_size = design.hidden_size;
  detector.embedding_norm.reset();
  detector.embedding_scale = 1;
  detector.type_vocab_size = 0;
  detector.position_offset = 0;
  detector.num_hidden_layers = own.num_hidden_layers;
  detector.hidden_size = own.hidden_size;
  detector.intermediate_size = own.intermediate_size;
  detector.num_attention_heads = detector.num_key_value_heads = own.num_attention_heads;
  detector.value_size = 0;
  if (!gated) detector.head_size = own.hidden_size / own.num_attention_heads;
  if (own_position(design.position).input) detector.position = PositionType::kNone;
  set_detector_layers(design, detector);
  const auto scheme = position_scheme(detector);
  detector.attention_scale = scheme != nullptr
                                 ? scheme->scale(position_shape(detector))
                                 : 1 / std::sqrt(static_cast<double>(detector.head_size));
  detector.head = {};
  detector.head.kind = HeadKind::kDiscriminator;
  detector.head.tied = false;
  return detector;
}

std::vector<TensorRow> detector_rows(const Design& design) {
  if (!design.variants.detector) return {};
  std::vector<TensorRow> rows;
  for (TensorRow& row : masque_rows(detector_design(design))) {
    if (row.roles[0] != Role::kWordTable) rows.push_back(std::move(row));
  }
  rows.push_back({"head.decoder", {Role::kDecoder}});
  for (TensorRow& row : rows) {
    row.name.insert(0, "detector.");
    row.detector = true;
  }
  return rows;
}

}  // namespace masque::model
