#include "model/checkpoint/text_head.hpp"

#include "base/parallel.hpp"
#include "model/masks.hpp"

namespace masque::model {

void choose_text_head(const FamilyConfig& config, ModelPlan& plan) {
  if (config.text("problem_type", "") != "regression") return;
  if (config.text("classifier_pooling", "cls") != "cls") return;
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
  plan.heads = {std::move(head)};
  plan.headless = false;
  const std::string mask = config.text("classifier_mask", "");
  if (mask.empty()) return;
  if (usage_error_message([&] { set_mask(mask, plan.design); }))
    config.refuse("classifier_mask", "a mask as mask-viz takes it");
}

}  // namespace masque::model
