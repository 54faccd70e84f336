// The head of a model that gives a number to a text: regression on the state of the first token.
#pragma once

#include <string_view>

#include "model/family.hpp"
#include "store/names/named_tensors.hpp"

namespace masque::model {

/// Throws InputError if the classes in `architectures` of `config`, of a model of `family`, say
/// that `classifier` labels something else than texts (tokens, choices, or the ends of answers), or
/// that the head is one of transformers, of another kind than lm-train's: but for BERT's.
void check_labels_texts(const store::ModelConfig& config, std::string_view family);

/// Puts the head w · tanh(pooler.dense(first state)) + b of HeadKind::kText before the own heads of
/// `plan`, and makes `classifier_mask` of `config` its mask, if the checkpoint has just this: a
/// `config` with "problem_type": "regression" (or, as a CrossEncoder of sentence-transformers has
/// it, BertForSequenceClassification without a problem_type), the layers pooler.dense (hidden,
/// hidden) and classifier (1, hidden) with biases among its `tensors`, and either family BERT
/// (transformers' BertForSequenceClassification with one label) or "classifier_pooling": "cls", as
/// `lm-train classify` writes it. Else nothing changes. Throws InputError if that mask is none, and
/// as check_labels_texts.
void choose_text_head(const FamilyConfig& config, const store::NamedTensors& tensors,
                      ModelPlan& plan);

}  // namespace masque::model
