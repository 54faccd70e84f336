#include "train/family_cases.hpp"

#include "model/checkpoint/starting_model.hpp"
#include "support/model_cases.hpp"

namespace masque::test {

using namespace masque::model;

std::vector<NetworkCase> family_cases() {
  std::vector<NetworkCase> cases;
  for (const ModelCase& one : model_cases()) {
    if (one.name == "tta_over_bert") continue;
    const StartingModel start(one.folder);
    NetworkCase made{one.name, start.design(), start.saved_design(start.design()).plan};
    if (made.design.streams == Streams::kFixedKeys) made.design.mask_token_id = 1;
    if (made.design.head.kind == HeadKind::kNone) {
      made.design.head.kind = HeadKind::kMasked;
      made.plan->heads.clear();
      // A head of its own would be no part of the plan.
      if (made.design.embedding_size != made.design.hidden_size) continue;
    }
    const bool two = made.design.streams == Streams::kTwo;
    cases.push_back(made);
    if (!two) continue;
    made.name += ", one stream";
    made.design.streams = Streams::kOne;
    cases.push_back(std::move(made));
  }
  return cases;
}

}  // namespace masque::test
