// Which parts of a design do not go together: model/variants.hpp.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/variants.hpp"

namespace masque::model {

std::optional<std::string> input_residual_problem(const Design& design) {
  if (design.variants.input_residual) return std::nullopt;
  switch (design.norm_placement) {
    case NormPlacement::kReZero:
      return "ReZero needs the residual, expected another norm placement";
    case NormPlacement::kAdmin:
      return "Admin scales the residual and needs it, expected another norm placement";
    case NormPlacement::kParallel:
      return "in parallel layers the feed-forward layer reads the embeddings directly, expected "
             "another norm placement";
    default: break;
  }
  if (design.streams == Streams::kOne) return std::nullopt;
  return "only a model with one stream starts from the embeddings of its tokens alone";
}

Index late_position_layer(const Design& design) {
  const Index layers = design.variants.late_positions;
  return layers > 0 ? design.num_hidden_layers - layers : -1;
}

std::optional<std::string> late_position_problem(const Design& design) {
  const Index layers = design.variants.late_positions;
  if (layers == 0) return std::nullopt;
  if (layers < 0 || layers > design.num_hidden_layers)
    return fmt::format("{} layers, expected 1 to {}, the model's number of layers", layers,
                       design.num_hidden_layers);
  if (design.max_position_embeddings == 0)
    return "the model has no maximum length, expected max_position_embeddings";
  if (design.streams != Streams::kOne) return "the model has several streams, expected one";
  return std::nullopt;
}

Index first_latent_layer(const Design& design) {
  const std::optional<LatentDesign>& latent = design.variants.latent;
  return design.num_hidden_layers - (latent ? latent->layers : 0);
}

void check_latent(const Design& design) {
  const std::optional<LatentDesign>& latent = design.variants.latent;
  if (!latent) return;
  const auto refuse = [](const std::string& found, std::string_view expected) {
    throw UsageError(fmt::format("a latent bottleneck with {}, expected {}", found, expected));
  };
  if (latent->layers < 1 || latent->layers > design.num_hidden_layers)
    refuse(fmt::format("{} layers", latent->layers),
           fmt::format("1 to {}, the model's number of layers", design.num_hidden_layers));
  if (latent->size < 2) refuse(fmt::format("size {}", latent->size), "at least 2");
  if (!(latent->kappa > 0 && latent->kappa <= 1e6))
    refuse(fmt::format("kappa {}", latent->kappa), "more than 0 and at most 1e6");
  if (design.streams != Streams::kOne) refuse("several streams", "one");
  if (!design.variants.mixer.empty())
    refuse(fmt::format("{} {}", field("mixer"), design.variants.mixer), "attention");
  if (design.variants.detector) refuse("a detector", "a model without detector");
  if (design.variants.late_positions > 0)
    refuse(field("late_positions"), "a model without late positions");
  // Scores from below would carry the first token past its bottleneck.
  if (design.variants.previous_scores != PreviousScores::kNone)
    refuse(field("previous_scores"), "a model without previous scores");
  for (Index l = first_latent_layer(design); l < std::ssize(design.layers); ++l) {
    const Index weights = design.layers[static_cast<std::size_t>(l)].weights;
    if (std::ranges::count(design.layers, weights, &LayerDesign::weights) > 1)
      refuse("layers that share weights", "layers with weights of their own");
  }
}

}  // namespace masque::model
