#include "model/checkpoint/changed_family.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/detector.hpp"
#include "model/masks.hpp"
#include "model/masque_names.hpp"
#include "model/masque_rows.hpp"
#include "model/variants.hpp"

namespace masque::model {

namespace {

constexpr const char* kQueryStart = "query_start";

/// Roles of positions that another scheme takes the place of.
bool is_of_position(Role role) {
  switch (role) {
    case Role::kPositionTable:
    case Role::kRelativeTable:
    case Role::kRelativeNorm:
    case Role::kRelative:
    case Role::kPositionKey:
    case Role::kPositionQuery:
    case Role::kContentBias:
    case Role::kPositionBias:
    case Role::kSegmentBias:
    case Role::kLayerSegmentTable:
    case Role::kPositionPart:
    case Role::kSharedPositionPart: return true;
    default: return false;
  }
}

bool has_role(const ModelPlan& plan, Role role) {
  return std::ranges::any_of(plan.rows, [&](const TensorRow& row) {
    return std::ranges::find(row.roles, role) != row.roles.end();
  });
}

/// `base` with what `wanted` may change.
Design with_changes(const Design& base, const Design& wanted) {
  Design design = base;
  design.mask = wanted.mask;
  design.variants.masks = wanted.variants.masks;
  design.streams = wanted.streams;
  design.mask_token_id = wanted.mask_token_id;
  design.normalizer = wanted.normalizer;
  design.type_vocab_size = wanted.type_vocab_size;
  design.head = wanted.head;
  design.variants.detector = wanted.variants.detector;
  design.variants.latent = wanted.variants.latent;
  if (!wanted.variants.position.empty()) {
    design.position = wanted.position;
    design.variants.position = wanted.variants.position;
    design.variants.position_shared = wanted.variants.position_shared;
    design.attention_scale = wanted.attention_scale;
    scale_listed_layers(design);
  }
  return design;
}

/// Whether two vocabularies differ at most in what they predict.
bool predicts_otherwise(HeadDesign own, const HeadDesign& wanted) {
  if (has_one_number(own.kind) || has_one_number(wanted.kind)) return false;
  own.kind = wanted.kind;
  own.shifted = wanted.shifted;
  return own == wanted;
}

/// Tables of positions are as long as the model.
bool lacks_table_length(const Design& design) {
  return design.max_position_embeddings <= 0 && has_position_table(design);
}

/// The family that a config.json changes, or that it is of.
struct Base {
  std::string model_type;
  ModelPlan plan;
};

Base base_of(const FamilyConfig& options) {
  const store::ModelConfig& config = options.raw();
  Base base;
  base.model_type = config.string("base_model_type").value_or(config.model_type());
  const Family* family = find_family(base.model_type);
  if (family == nullptr || family->name == "masque")
    options.refuse("base_model_type", "the model_type of another family");
  const std::string text =
      set_json_member(config.text(), {"model_type"}, quote_json(base.model_type));
  base.plan = family->plan(options.with(store::ModelConfig::parse(text, config.path())));
  return base;
}

Design read_changes(const FamilyConfig& changes, Design design) {
  read_mask(changes, design);
  design.streams = read_word(changes, "streams", kStreams, design.streams);
  if (changes.has("mask_token_id"))
    design.mask_token_id = static_cast<TokenId>(changes.count({"mask_token_id"}, 0));
  design.type_vocab_size = changes.count({"type_vocab_size"}, design.type_vocab_size);
  if (changes.has("position")) {
    design.position = PositionType::kNone;
    design.variants.position_shared = changes.flag("position_shared", false);
  }
  if (const auto problem = usage_error_message([&] {
        design.normalizer = changes.text("normalizer", design.normalizer.text());
        layer_normalizers(design);
        if (changes.has("position")) design.variants.position = changes.text("position", "");
        layers_with_position(design);
        const nn::PositionScheme* scheme = position_scheme(design);
        if (changes.has("position") && scheme == nullptr)
          throw UsageError("position '', expected a scheme");
        if (changes.has("position"))
          design.attention_scale =
              changes.number("attention_scale", scheme->scale(position_shape(design)));
        scale_listed_layers(design);
        check_score_scale(design);
      }))
    throw InputError(changes.raw().path(), fmt::format("changes: {}", *problem));
  read_detector(changes, design);
  read_latent(changes, design);
  return design;
}

}  // namespace

bool can_change(const Design& base, const Design& wanted) {
  const bool gated = base.layer_kind == LayerKind::kGatedAttention;
  const bool alone = wanted.streams == Streams::kOne;
  if (!alone && (base.variants.mixer != nullptr || base.convolution_size > 0)) return false;
  if (!alone && base.token_dropout > 0) return false;
  // Positions of the input reach no query stream; gated units have none of two streams.
  if (wanted.streams == Streams::kTwo && (adds_position(wanted) || gated)) return false;
  if (!same_design(with_changes(base, wanted), wanted)) return false;
  if (usage_error_message([&] { detector_rows(wanted); })) return false;
  if (usage_error_message([&] { check_latent(wanted); })) return false;
  if (usage_error_message([&] { check_score_scale(wanted); })) return false;
  if (shifted_head_problem(wanted)) return false;
  return !lacks_table_length(wanted);
}

ModelPlan changed_plan(ModelPlan base, const Design& wanted) {
  ModelPlan plan = std::move(base);
  if (!wanted.variants.position.empty()) {
    std::erase_if(plan.rows, [](const TensorRow& row) {
      return std::ranges::any_of(row.roles, is_of_position);
    });
    for (TensorRow& row : position_rows(wanted)) plan.rows.push_back(std::move(row));
  }
  plan.design = wanted;
  std::erase_if(plan.rows,
                [](const TensorRow& row) { return row.roles.front() == Role::kScoreScale; });
  for (TensorRow& row : score_scale_rows(wanted)) plan.rows.push_back(std::move(row));
  std::erase_if(plan.rows, [](const TensorRow& row) { return row.detector; });
  for (TensorRow& row : detector_rows(wanted)) plan.rows.push_back(std::move(row));
  std::erase_if(plan.rows, [](const TensorRow& row) {
    return row.roles.front() == Role::kLatentInput || row.roles.front() == Role::kLatentOutput ||
           row.roles.front() == Role::kLatentKappa;
  });
  for (TensorRow& row : latent_rows(wanted)) plan.rows.push_back(std::move(row));
  const auto tensor = [&](std::string name, Role role, Parts parts) {
    if (!has_role(plan, role)) plan.rows.push_back({std::move(name), {role}, parts});
  };
  if (wanted.streams != Streams::kTwo) {
    // Of an earlier change; XLNet's own has another name.
    std::erase_if(plan.rows, [](const TensorRow& row) { return row.name == kQueryStart; });
  } else {
    tensor(kQueryStart, Role::kQueryStart, Parts::kTensor);
  }
  if (wanted.type_vocab_size > 0 && wanted.position != PositionType::kXlnet)
    tensor("embeddings.type", Role::kSegmentTable, Parts::kWeight);
  if (wanted.head.kind == HeadKind::kNone || head_like(plan, wanted.head) != nullptr) return plan;
  for (HeadPlan& own : plan.heads) {
    if (!predicts_otherwise(own.design, wanted.head)) continue;
    own.design.kind = wanted.head.kind;
    own.design.shifted = wanted.head.shifted;
    return plan;
  }
  plan.heads.push_back(masque_head(wanted, wanted.head));
  return plan;
}

std::string changed_config(const std::string& text, const Design& wanted) {
  const auto [type, plan] = base_of(FamilyConfig(store::ModelConfig::parse(text, "config.json")));
  const Design& base = plan.design;
  std::string changes;
  JsonWriter json(changes);
  json.begin_object();
  if (wanted.mask != base.mask || wanted.variants.masks != base.variants.masks)
    json.member("mask", mask_word(wanted));
  if (wanted.streams != base.streams) json.member("streams", word_of(kStreams, wanted.streams));
  if (wanted.mask_token_id != base.mask_token_id && wanted.mask_token_id)
    json.member("mask_token_id", *wanted.mask_token_id);
  if (wanted.normalizer != base.normalizer) json.member("normalizer", wanted.normalizer.text());
  if (wanted.type_vocab_size != base.type_vocab_size)
    json.member("type_vocab_size", wanted.type_vocab_size);
  if (!wanted.variants.position.empty()) {
    json.member("position", wanted.variants.position.text());
    json.member("position_shared", wanted.variants.position_shared);
    json.member("attention_scale", wanted.attention_scale);
  }
  if (wanted.variants.detector)
    json.raw_member("detector", detector_json(*wanted.variants.detector));
  if (wanted.variants.latent) json.raw_member("latent", latent_json(*wanted.variants.latent));
  const bool known = std::ranges::any_of(
      plan.heads, [&](const HeadPlan& own) { return own.design.kind == wanted.head.kind; });
  if (!known && (wanted.head.kind != HeadKind::kNone || !plan.heads.empty()))
    json.member("head", word_of(kHeads, wanted.head.kind));
  if (!known && wanted.head.kind != HeadKind::kNone) json.member("head_scale", wanted.head.scale);
  if (!known && wanted.head.shifted) json.member("head_shifted", true);
  json.end_object();
  std::string out = set_json_member(text, {"model_type"}, quote_json("masque"));
  out = set_json_member(out, {"base_model_type"}, quote_json(type));
  return set_json_member(out, {"changes"}, changes);
}

std::optional<ModelPlan> read_changed(const FamilyConfig& config) {
  if (!config.has("base_model_type")) return std::nullopt;
  ModelPlan plan = base_of(config).plan;
  const auto changes = config.object("changes");
  if (!changes) config.refuse("changes", "an object");
  Design wanted = read_changes(*changes, plan.design);
  if (!can_change(plan.design, wanted)) {
    throw InputError(
        config.raw().path(),
        lacks_table_length(wanted)
            ? fmt::format("changes: position {}: the model has no "
                          "max_position_embeddings, expected positions without a table",
                          wanted.variants.position.text())
            : "changes: the model cannot have these streams");
  }
  wanted.head = {};
  plan = changed_plan(std::move(plan), wanted);
  if (changes->has("head")) {
    const HeadKind kind = read_word(*changes, "head", kHeads, HeadKind::kNone);
    plan.headless = kind == HeadKind::kNone;
    HeadDesign own;
    own.kind = kind;
    own.scale = changes->positive("head_scale", 1);
    own.shifted = changes->flag("head_shifted", false);
    if (has_one_number(kind)) {
      own.transform = kind == HeadKind::kDiscriminator;
      if (own.transform) own.activation = plan.design.activation;
      own.tied = false;
      // The family's own ones are for other objectives.
      plan.heads.insert(plan.heads.begin(), masque_head(plan.design, own));
    } else if (kind != HeadKind::kNone) {
      for (HeadPlan& family : plan.heads) {
        family.design.kind = kind;
        family.design.shifted = own.shifted;
      }
      if (plan.heads.empty()) plan.heads = {masque_head(plan.design, own)};
    }
  }
  for (const HeadPlan& head : plan.heads) {
    Design one = plan.design;
    one.head = head.design;
    if (const auto problem = shifted_head_problem(one))
      throw InputError(config.raw().path(), "changes: head_shifted: " + *problem);
  }
  plan.design.family = plan.design.model_type = "masque";
  return plan;
}

}  // namespace masque::model
