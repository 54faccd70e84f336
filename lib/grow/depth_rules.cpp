#include "grow/depth_rules.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/layer_list.hpp"
#include "model/variants.hpp"

namespace masque::grow {

namespace {

using model::Design;
using model::Role;

bool stands_after_its_layer(DepthRule rule) {
  return rule == DepthRule::kIdentity || rule == DepthRule::kInterleave;
}

[[noreturn]] void refuse(const std::string& why) {
  throw UsageError(fmt::format("cannot make this model deeper: {}", why));
}

void check_identity(const Design& design) {
  if (model::count_layers(design) != design.num_hidden_layers)
    refuse(
        "layers share their weights, so added layers change the outputs; expected the rule "
        "interleave or stack");
  if (!design.variants.mixer_output)
    refuse(
        fmt::format("its layers mix tokens ({}) without weights that could be 0, so added layers "
                    "change the outputs; expected the rule interleave or stack",
                    model::mixer_name(design)));
  if (design.variants.previous_scores != model::PreviousScores::kNone)
    refuse("an added layer would change the scores that are passed from layer to layer");
}

/// Whether `role` is the last product of a feed-forward layer or of an expert.
bool ends_feed_forward(Role role) {
  return role == Role::kDown || role == Role::kExpertDown || role == Role::kSharedExpertDown;
}

/// Whether a tensor is the last one of what a part of a layer adds: zeros there add nothing.
bool ends_branch(const Design& design, Role role) {
  switch (design.norm_placement) {
    case model::NormPlacement::kReZero:
      return role == Role::kAttentionScale || role == Role::kFeedForwardScale;
    case model::NormPlacement::kSandwich:
    case model::NormPlacement::kOutput:
      if (design.norm_weights)
        return role == Role::kAttentionOutputNorm || role == Role::kFeedForwardOutputNorm;
      return role == Role::kOutput || ends_feed_forward(role);
    case model::NormPlacement::kNormFormer:
      return role == (design.norm_weights ? Role::kAttentionOutputNorm : Role::kOutput) ||
             ends_feed_forward(role);
    default: return role == Role::kOutput || ends_feed_forward(role);
  }
}

/// The norm that a layer of a post-norm model ends with.
Role last_norm(const Design& design, Index layer) {
  if (design.layer_kind == model::LayerKind::kGatedAttention) return Role::kAttentionNorm;
  // DeBERTa's convolution follows the first layer, with a norm of its own.
  if (design.convolution_size > 0 && layer == 0) return Role::kConvolutionNorm;
  return Role::kFeedForwardNorm;
}

}  // namespace

NameTable<DepthRule> depth_rules() {
  static constexpr std::array<std::pair<std::string_view, DepthRule>, 4> kNames{
      {{"identity", DepthRule::kIdentity},
       {"zero", DepthRule::kZero},
       {"interleave", DepthRule::kInterleave},
       {"stack", DepthRule::kStack}}};
  return kNames;
}

bool keeps_function(DepthRule rule) {
  return rule == DepthRule::kIdentity || rule == DepthRule::kZero;
}

std::vector<LayerCopy> deeper_layers(const Design& design, Index layers, DepthRule rule) {
  const Index before = design.num_hidden_layers;
  if (layers <= before) {
    throw UsageError(
        fmt::format("{} {}, expected more than the model's {}", field("layers"), layers, before));
  }
  if (design.variants.latent)
    refuse("it has latent bottlenecks before its last layers, expected a model without");
  if (design.variants.late_positions > 0)
    refuse("absolute positions are added before its last layers, expected a model without");
  if (design.variants.position.is_list() && !model::shares_position(design) &&
      !model::position_parameters(design).empty())
    refuse("only some of its layers have positions with their own parameters");
  const std::vector<bool> learns = model::layers_with_score_scale(design);
  if (std::ranges::count(learns, learns.front()) != std::ssize(learns))
    refuse("only some of its layers learn a scale of scores");
  const Index stacks = design.streams == model::Streams::kTowers ? 2 : 1;
  if (layers % stacks != 0) refuse("two towers need an even number of layers");
  if (keeps_function(rule)) check_identity(design);
  const Index own = before / stacks;
  const Index deep = layers / stacks;
  std::vector<LayerCopy> copies;
  copies.reserve(static_cast<std::size_t>(layers));
  for (Index stack = 0; stack < stacks; ++stack) {
    Index last = -1;
    for (Index i = 0; i < deep; ++i) {
      const Index from = stands_after_its_layer(rule) ? i * own / deep : i % own;
      const bool added = stands_after_its_layer(rule) ? from == last : i >= own;
      copies.push_back({stack * own + from, added});
      last = from;
    }
  }
  return copies;
}

bool moves_norms(const Design& design, DepthRule rule) {
  return keeps_function(rule) && norms_sum(design.norm_placement);
}

LayerTensor layer_tensor(const Design& design, std::span<const LayerCopy> copies, DepthRule rule,
                         Role role, bool bias, Index layer) {
  const LayerCopy& copy = copies[static_cast<std::size_t>(layer)];
  LayerTensor tensor{role, copy.from, std::nullopt};
  if (!keeps_function(rule)) return tensor;
  // What is stored of a norm's weight of 0 or 1.
  const double offset = model::is_norm(role) && !bias ? design.norm.weight_offset : 0;
  if (copy.added && ends_branch(design, role)) tensor.constant = -offset;
  if (copy.added && (role == Role::kAttentionResidual || role == Role::kFeedForwardResidual))
    tensor.constant = 1;
  if (!moves_norms(design, rule) || !model::is_norm(role)) return tensor;
  const auto is_added = [&](Index i) {
    return i < std::ssize(copies) && copies[static_cast<std::size_t>(i)].added;
  };
  // The layer below that is not added: of the run of added layers the last one ends as it did.
  Index below = layer;
  while (is_added(below)) --below;
  const Index ended = copies[static_cast<std::size_t>(below)].from;
  const bool ends = role == (copy.added ? last_norm(design, 1) : last_norm(design, copy.from));
  if (ends && copy.added && !is_added(layer + 1)) return {last_norm(design, ended), ended, {}};
  if (copy.added || (ends && is_added(layer + 1))) tensor.constant = bias ? 0 : 1 - offset;
  return tensor;
}

}  // namespace masque::grow
