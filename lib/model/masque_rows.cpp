#include "model/masque_rows.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/variants.hpp"

namespace masque::model {
namespace {

/// Rows of a design by its own choices.
class Rows {
 public:
  explicit Rows(const Design& design) : design_(design) {}

  void dense(const std::string& name, Role role) {
    rows.push_back({name, {role}, design_.use_bias ? Parts::kBoth : Parts::kWeight});
  }
  void norm(const std::string& name, Role role) {
    if (!design_.norm_weights) return;
    const bool layer = design_.norm.kind == kernel::Norm::kLayer;
    rows.push_back({name, {role}, layer ? Parts::kBoth : Parts::kWeight});
  }
  void table(const std::string& name, Role role) { rows.push_back({name, {role}, Parts::kWeight}); }
  void tensor(const std::string& name, Role role, Index part = 0) {
    TensorRow row{name, {role}, Parts::kTensor};
    row.part = part;
    rows.push_back(std::move(row));
  }

  std::vector<TensorRow> rows;

 private:
  const Design& design_;
};

void add_embeddings(const Design& design, Rows& to) {
  to.table("embeddings.word", Role::kWordTable);
  if (design.position == PositionType::kLearned) {
    to.table("embeddings.position", Role::kPositionTable);
  }
  if (design.type_vocab_size > 0) to.table("embeddings.type", Role::kSegmentTable);
  if (design.embedding_norm) to.norm("embeddings.norm", Role::kEmbeddingNorm);
  if (design.embedding_size != design.hidden_size) {
    to.dense("embeddings.projection", Role::kEmbeddingProjection);
  }
  if (design.streams == Streams::kTwo) to.tensor("query_start", Role::kQueryStart);
  if (design.variants.late_positions > 0) to.tensor("late_positions", Role::kLatePositions);
}

void add_gated_layers(const Design& design, Rows& to) {
  const std::string layer = "layers.{l}.gated.";
  to.norm(layer + "norm", Role::kAttentionNorm);
  to.dense(layer + "input", Role::kGatedInput);
  to.tensor(layer + "gamma", Role::kGatedGamma);
  if (design.use_bias) to.tensor(layer + "beta", Role::kGatedBeta);
  to.dense(layer + "output", Role::kOutput);
}

void add_layers(const Design& design, Rows& to) {
  const std::string attention = "layers.{l}.attention.";
  const std::string feed_forward = "layers.{l}.feed_forward.";
  if (design.variants.mixer == nullptr) {
    to.dense(attention + "query", Role::kQuery);
    to.dense(attention + "key", Role::kKey);
    to.dense(attention + "value", Role::kValue);
  }
  if (design.query_key_norm != QueryKeyNorm::kNone) {
    to.norm(attention + "query_norm", Role::kQueryNorm);
    to.norm(attention + "key_norm", Role::kKeyNorm);
  }
  if (design.variants.mixer_output) to.dense(attention + "output", Role::kOutput);
  const bool scaled = design.norm_placement == NormPlacement::kReZero;
  const bool weighted = design.norm_placement == NormPlacement::kAdmin;
  if (has_attention_norm(design.norm_placement)) to.norm(attention + "norm", Role::kAttentionNorm);
  if (norms_attention_output(design.norm_placement))
    to.norm(attention + "output_norm", Role::kAttentionOutputNorm);
  if (scaled) to.tensor(attention + "scale", Role::kAttentionScale);
  if (weighted) to.tensor(attention + "residual", Role::kAttentionResidual);
  if (scales_heads(design)) to.tensor(attention + "head_scale", Role::kHeadScale);
  const TalkingHeads talking = design.variants.talking_heads;
  if (talking == TalkingHeads::kBefore || talking == TalkingHeads::kBoth) {
    to.tensor(attention + "talking_before", Role::kTalkingBefore);
  }
  if (mixes_weights(talking)) to.tensor(attention + "talking_after", Role::kTalkingAfter);
  to.dense(feed_forward + "up", Role::kUp);
  if (design.gated) to.dense(feed_forward + "gate", Role::kGate);
  to.dense(feed_forward + "down", Role::kDown);
  if (has_feed_forward_norm(design.norm_placement))
    to.norm(feed_forward + "norm", Role::kFeedForwardNorm);
  if (norms_feed_forward_output(design.norm_placement))
    to.norm(feed_forward + "output_norm", Role::kFeedForwardOutputNorm);
  if (scaled) to.tensor(feed_forward + "scale", Role::kFeedForwardScale);
  if (weighted) to.tensor(feed_forward + "residual", Role::kFeedForwardResidual);
  if (design.norm_placement == NormPlacement::kNormFormer)
    to.norm(feed_forward + "inner_norm", Role::kFeedForwardInnerNorm);
}

/// A tensor of the layers that have one: by the pattern of all layers where these are all, else one
/// row a layer, of those that share their weights the first.
void add_by_layer(const Design& design, const std::vector<bool>& layers, const std::string& name,
                  Role role, Index part, Rows& to) {
  if (std::ranges::find(layers, false) == layers.end())
    return to.tensor("layers.{l}." + name, role, part);
  std::vector<bool> made(layers.size(), false);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto weights = static_cast<std::size_t>(design.layers[l].weights);
    if (!layers[l] || made[weights]) continue;
    made[weights] = true;
    to.tensor(fmt::format("layers.{}.{}", l, name), role, part);
    to.rows.back().layer = design.layers[l].weights;
  }
}

void add_positions(const Design& design, Rows& to) {
  Index part = 0;
  for (const nn::PositionParameter& parameter : position_parameters(design)) {
    const std::string name = "position." + parameter.name;
    if (shares_position(design)) {
      to.tensor(name, Role::kSharedPositionPart, part);
    } else {
      add_by_layer(design, layers_with_position(design), name, Role::kPositionPart, part, to);
    }
    ++part;
  }
}

void add_mixers(const Design& design, Rows& to) {
  Index part = 0;
  for (const nn::MixerParameter& parameter : mixer_parameters(design)) {
    to.tensor("layers.{l}.mixer." + parameter.name, Role::kMixerPart, part++);
  }
}

}  // namespace

std::vector<TensorRow> position_rows(const Design& design) {
  Rows rows(design);
  add_positions(design, rows);
  return std::move(rows.rows);
}

std::vector<TensorRow> score_scale_rows(const Design& design) {
  Rows rows(design);
  add_by_layer(design, layers_with_score_scale(design), "attention.score_scale", Role::kScoreScale,
               0, rows);
  return std::move(rows.rows);
}

std::vector<TensorRow> latent_rows(const Design& design) {
  std::vector<TensorRow> rows;
  for (Index l = first_latent_layer(design); l < design.num_hidden_layers; ++l) {
    for (const auto& [name, role] :
         {std::pair{"input", Role::kLatentInput}, std::pair{"output", Role::kLatentOutput},
          std::pair{"log_kappa", Role::kLatentKappa}}) {
      if (role == Role::kLatentKappa && !design.variants.latent->learned_kappa) continue;
      TensorRow row{fmt::format("layers.{}.latent.{}", l, name), {role}, Parts::kTensor};
      row.layer = design.layers[static_cast<std::size_t>(l)].weights;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

HeadPlan masque_head(const Design& design, const HeadDesign& head) {
  HeadPlan plan;
  plan.design = head;
  const bool vocabulary = !has_one_number(head.kind);
  plan.what = head.kind == HeadKind::kEnergy   ? "energy head"
              : !vocabulary                    ? "discriminator head"
              : head.kind == HeadKind::kCausal ? "causal-LM head"
                                               : "masked-LM head";
  plan.decoder = "head.decoder.weight";
  Rows rows(design);
  if (head.transform) rows.dense("head.transform", Role::kHeadTransform);
  if (head.norm) rows.norm("head.norm", Role::kHeadNorm);
  if (design.use_bias && head.transform) {
    rows.rows.push_back({"head.decoder.bias", {Role::kDecoder}, Parts::kBiasTensor});
  }
  plan.rows = std::move(rows.rows);
  return plan;
}

std::vector<TensorRow> masque_rows(const Design& design) {
  Rows rows(design);
  add_embeddings(design, rows);
  if (design.layer_kind == LayerKind::kGatedAttention) {
    add_gated_layers(design, rows);
  } else {
    add_layers(design, rows);
  }
  add_positions(design, rows);
  add_mixers(design, rows);
  for (TensorRow& row : score_scale_rows(design)) rows.rows.push_back(std::move(row));
  if (design.final_norm) rows.norm("final_norm", Role::kFinalNorm);
  return std::move(rows.rows);
}

}  // namespace masque::model
