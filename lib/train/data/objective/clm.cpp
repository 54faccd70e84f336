// Causal language modelling: every token from those before it.
#include <algorithm>

#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Clm final : public Objective {
 public:
  using Objective::Objective;

  void adapt(model::Design& design) const override {
    adapt_design({.objective = "clm",
                  .mask = model::DefaultMask::kCausal,
                  .head = model::HeadKind::kCausal,
                  .segments = options().pairs,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
    // As GPT-2 has it: states go to the vocabulary as they are.
    design.head.transform = false;
    design.head.norm.reset();
    design.head.activation = model::HeadDesign().activation;
  }

  bool takes_masks() const override { return true; }
  std::optional<Index> target_offset(Index /*size*/) const override { return 1; }

 protected:
  /// Row i predicts token i + 1; of pairs only tokens of the target, under a mask of the sequence
  /// only tokens that may read row i: not those of another document.
  Example make(records::Record& record) const override {
    const std::size_t n = record.size();
    std::vector<std::int32_t>& labels = record.labels.make(n);
    std::fill(labels.begin(), labels.end(), records::kNoLabel);
    std::optional<mask::Mask> mask;
    if (record.mask) mask = bound_mask(*record.mask, static_cast<Index>(n));
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const auto row = static_cast<Index>(i);
      if (mask && !mask->allows(row + 1, row)) continue;
      if (!record.seg.present || record.seg.values[i + 1] == 1) labels[i] = record.ids[i + 1];
    }
    return example_of(record);
  }
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Clm>(options);
}

const ObjectiveKind kClm{"clm",
                         "the next token from those before; of pairs the target's",
                         "GPT, Radford et al. 2018",
                         {.options = {"mask", "block_size", "memory", "drop"},
                          .made_for =
                              [](const model::Design& design) {
                                return design.streams == model::Streams::kOne && !design.source &&
                                       design.head.kind == model::HeadKind::kCausal;
                              },
                          .predicts_first = true,
                          .score = evaluate::ScoreKind::kCausal},
                         read_objective};
const ObjectiveRegistration kClmRegistration{kClm};

}  // namespace

}  // namespace masque::train
