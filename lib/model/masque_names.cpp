#include "model/masque_names.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "model/detector.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"

namespace masque::model {

void read_mask(const FamilyConfig& config, Design& design) {
  if (!config.has("mask")) return;
  const std::string text = config.text("mask", "");
  if (std::ranges::any_of(kMasks, [&](const auto& own) { return own.first == text; })) {
    design.mask = read_word(config, "mask", kMasks, design.mask);
    design.variants.masks.clear();
  } else if (const auto problem = usage_error_message([&] { set_mask(text, design); })) {
    throw InputError(config.raw().path(), fmt::format("mask: {}", *problem));
  }
}

std::string mask_word(const Design& design) {
  return design.variants.masks.empty() ? std::string(word_of(kMasks, design.mask))
                                       : layers_text(design.variants.masks);
}

void read_detector(const FamilyConfig& config, Design& design) {
  if (!config.has("detector")) return;
  const auto sizes = config.object("detector");
  if (!sizes) config.refuse("detector", "an object of sizes");
  DetectorDesign own;
  own.num_hidden_layers = sizes->layers({"num_hidden_layers"}, 1);
  own.hidden_size = sizes->size({"hidden_size"}, design.hidden_size);
  own.num_attention_heads = sizes->size({"num_attention_heads"}, design.num_attention_heads);
  own.intermediate_size = sizes->size({"intermediate_size"}, design.intermediate_size);
  design.variants.detector = own;
  if (const auto problem = usage_error_message([&] { detector_rows(design); }))
    throw InputError(config.raw().path(), fmt::format("detector: {}", *problem));
}

std::string detector_json(const DetectorDesign& detector) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("num_hidden_layers", detector.num_hidden_layers);
  json.member("hidden_size", detector.hidden_size);
  json.member("num_attention_heads", detector.num_attention_heads);
  json.member("intermediate_size", detector.intermediate_size).end_object();
  return text;
}

void read_latent(const FamilyConfig& config, Design& design) {
  if (!config.has("latent")) return;
  const auto sizes = config.object("latent");
  if (!sizes) config.refuse("latent", "an object of sizes");
  LatentDesign own;
  own.layers = sizes->layers({"num_hidden_layers"}, 1);
  own.size = sizes->size({"size"}, own.size);
  own.kappa = sizes->positive("kappa", own.kappa);
  own.learned_kappa = sizes->flag("learned_kappa", false);
  design.variants.latent = own;
  if (const auto problem = usage_error_message([&] { check_latent(design); }))
    throw InputError(config.raw().path(), fmt::format("latent: {}", *problem));
}

std::string latent_json(const LatentDesign& latent) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("num_hidden_layers", latent.layers);
  json.member("size", latent.size).member("kappa", latent.kappa);
  if (latent.learned_kappa) json.member("learned_kappa", true);
  json.end_object();
  return text;
}

}  // namespace masque::model
