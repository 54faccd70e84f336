// A checkpoint of a family with changes that its own config.json has no words for: another mask,
// other streams, a normalizer, a position scheme, token types, a vocabulary on a model without
// head, a discriminator, a detector, latent bottlenecks. config.json keeps the family's keys;
// "model_type" is "masque", so that programs that know nothing of the changes refuse it,
// "base_model_type" is the family's, and "changes" says the rest. Tensors keep the family's names;
// new ones are named as those of the family `masque`.
#pragma once

#include <optional>
#include <string>

#include "model/family.hpp"

namespace masque::model {

/// Whether `wanted` differs from `base` in nothing else.
bool can_change(const Design& base, const Design& wanted);

/// The plan of `base.design`'s family for `wanted`. Needs can_change.
ModelPlan changed_plan(ModelPlan base, const Design& wanted);

/// `text`, a config.json of the family or of the family with other changes, with those to `wanted`.
/// Needs can_change. Throws InputError if the text is no such config.
std::string changed_config(const std::string& text, const Design& wanted);

/// The plan of `config` with "base_model_type"; nothing without. Throws InputError for a base that
/// is no other family, and for changes that its design cannot have.
std::optional<ModelPlan> read_changed(const FamilyConfig& config);

}  // namespace masque::model
