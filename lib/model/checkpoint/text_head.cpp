#include "model/checkpoint/text_head.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/parallel.hpp"
#include "model/masks.hpp"

namespace masque::model {

namespace {

bool has(const store::NamedTensors& tensors, const ModelPlan& plan, const std::string& name,
         const Shape& shape) {
  for (const std::string& prefix : {plan.prefix, std::string()}) {
    const store::TensorInfo* tensor = tensors.find(prefix + name);
    if (tensor != nullptr) return tensor->shape == shape;
  }
  return false;
}

}  // namespace

void check_labels_texts(const store::ModelConfig& config, std::string_view family) {
  for (const std::string& name : config.architectures()) {
    if (family != "bert" && name.ends_with("ForSequenceClassification")) {
      throw InputError(
          config.path(),
          fmt::format("architectures is {} with classifier_pooling, expected the classifier that "
                      "lm-train writes for family {}: that of the class has another head, which is "
                      "not supported",
                      escape(name), family));
    }
    for (const std::string_view ending :
         {"ForTokenClassification", "ForMultipleChoice", "ForQuestionAnswering"}) {
      if (!name.ends_with(ending)) continue;
      throw InputError(
          config.path(),
          fmt::format("architectures is {}, expected a class …ForSequenceClassification"
                      " for its classifier.weight: other classifiers are not supported",
                      escape(name)));
    }
  }
}

void choose_text_head(const FamilyConfig& config, const store::NamedTensors& tensors,
                      ModelPlan& plan) {
  const auto text = [&](const char* name) { return config.raw().string(name).value_or(""); };
  const std::string pooling = text("classifier_pooling");
  // transformers takes one label without a type for regression.
  const std::vector<std::string> classes = config.raw().architectures();
  const bool one_label =
      text("problem_type").empty() && pooling.empty() &&
      std::ranges::find(classes, "BertForSequenceClassification") != classes.end();
  if (text("problem_type") != "regression" && !one_label) return;
  if (pooling != "cls" && (plan.design.family != "bert" || !pooling.empty())) return;
  const auto width = static_cast<std::uint64_t>(plan.design.hidden_size);
  if (!has(tensors, plan, "classifier.weight", {1, width}) ||
      !has(tensors, plan, "classifier.bias", {1}) ||
      !has(tensors, plan, "pooler.dense.weight", {width, width}) ||
      !has(tensors, plan, "pooler.dense.bias", {width}))
    return;
  check_labels_texts(config.raw(), plan.design.family);
  HeadPlan head;
  head.design.kind = HeadKind::kText;
  head.design.transform = true;
  head.design.activation = kernel::Activation::kTanh;
  head.design.tied = false;
  head.what = "regression head";
  head.evidence = "classifier.weight";
  head.decoder = "classifier.weight";
  head.rows = {{"~pooler.dense|pooler.dense", {Role::kHeadTransform}},
               {"classifier.bias", {Role::kDecoder}, Parts::kBiasTensor}};
  plan.heads.insert(plan.heads.begin(), std::move(head));
  plan.headless = false;
  const std::string mask = text("classifier_mask");
  if (mask.empty()) return;
  if (const auto problem = usage_error_message([&] { set_mask(mask, plan.design); }))
    throw InputError(config.raw().path(), fmt::format("classifier_mask: {}", *problem));
}

}  // namespace masque::model
