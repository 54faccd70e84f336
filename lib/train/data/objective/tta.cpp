// Language autoencoding: every token from all others, in one pass.
#include "train/data/every_token.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Tta final : public EveryTokenObjective {
 public:
  using EveryTokenObjective::EveryTokenObjective;

  void adapt(model::Design& design) const override {
    adapt_design({.objective = "tta",
                  .streams = model::Streams::kFixedKeys,
                  .mask = model::DefaultMask::kOthers,
                  .segments = options().pairs,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }

  bool takes_masks() const override { return true; }
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Tta>(options);
}

const ObjectiveKind kTta{
    "tta",
    "every token, from all others in one pass",
    "T-TA, Shin et al. 2020, arXiv:2004.08097",
    {.options = {"mask", "drop"},
     .made_for =
         [](const model::Design& design) { return design.streams == model::Streams::kFixedKeys; },
     .score = evaluate::ScoreKind::kTta},
    read_objective};
const ObjectiveRegistration kTtaRegistration{kTta};

}  // namespace

}  // namespace masque::train
