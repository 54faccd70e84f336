// Language autoencoding: every token from all others, in one pass.
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Tta final : public Objective {
 public:
  using Objective::Objective;

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
  std::optional<Index> target_offset(Index /*size*/) const override { return 0; }

 protected:
  /// Special tokens are targets too, as in the released code.
  Example make(records::Record& record) const override {
    record.labels.make(record.size()) = record.ids;
    return example_of(record);
  }
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Tta>(options);
}

const ObjectiveKind kTta{"tta",
                         "every token, from all others in one pass",
                         "T-TA, Shin et al. 2020, arXiv:2004.08097",
                         {"mask", "drop", "pairs"},
                         read_objective};
const ObjectiveRegistration kTtaRegistration{kTta};

}  // namespace

}  // namespace masque::train
