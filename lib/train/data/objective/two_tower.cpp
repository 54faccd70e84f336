// TwoTower: every token from what stands to its left and to its right, read by a tower each.
#include "model/masks.hpp"
#include "train/data/every_token.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class TwoTower final : public EveryTokenObjective {
 public:
  using EveryTokenObjective::EveryTokenObjective;

  void adapt(model::Design& design) const override {
    const bool open = design.streams == model::Streams::kOne &&
                      design.mask == model::DefaultMask::kFull && design.variants.masks.empty();
    if (open) model::set_towers(design);
    adapt_design({.objective = "two-tower",
                  .streams = model::Streams::kTowers,
                  .segments = options().pairs,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const TwoTower>(options);
}

const ObjectiveKind kTwoTower{
    "two-tower",
    "every token, from a tower that reads to the right and one that reads to the left",
    "TwoTower, Clark et al. 2020, arXiv:2012.08561",
    {.options = {"drop"}},
    read_objective};
const ObjectiveRegistration kTwoTowerRegistration{kTwoTower};

}  // namespace

}  // namespace masque::train
