// The head of a model that gives a number to a text: regression on the state of the first token.
#pragma once

#include "model/family.hpp"

namespace masque::model {

/// Of a config.json with "problem_type": "regression" that pools the first token, as transformers'
/// BertForSequenceClassification with one label and `lm-train classify` have it: the heads of the
/// plan give way to HeadKind::kText, w · tanh(pooler.dense(first state)) + b, and its mask to
/// `classifier_mask`. Else nothing changes. Throws InputError if that mask is none.
void choose_text_head(const FamilyConfig& config, ModelPlan& plan);

}  // namespace masque::model
