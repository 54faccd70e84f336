// Masked diffusion: tokens are hidden at a rate that is drawn for each sequence, and predicted,
// each loss divided by the rate; with blocks each of them has a rate, and its clean ones before it.
#include "records/mdlm.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/masks.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

records::MdlmOptions mdlm_options(const ObjectiveOptions& given) {
  records::MdlmOptions mdlm = given.mdlm;
  mdlm.seed = given.seed;
  if (given.tokens.mask < 0)
    throw UsageError("the tokenizer has no mask token, which the objective needs");
  return mdlm;
}

class Mdlm final : public Objective {
 public:
  explicit Mdlm(const ObjectiveOptions& given)
      : Objective(given), corruption_(make_mdlm(mdlm_options(given), given.tokens)) {}

  void adapt(model::Design& design) const override {
    // Without noise a block reads the blocks before it and itself: the model that writes.
    const std::string mask = fmt::format("causal_blocks({})", options().mdlm.block_size);
    if (blocks() && design.variants.masks.empty() && design.mask == model::DefaultMask::kFull)
      model::set_mask(mask, design);
    if (blocks() && layers_text(design.variants.masks) != mask) {
      throw UsageError(fmt::format("{} {}: the model has another mask, expected {}",
                                   field("block_size"), options().mdlm.block_size, mask));
    }
    adapt_design({.objective = "mdlm",
                  .other_mask = !blocks(),
                  .segments = options().pairs,
                  .own_masks = blocks(),
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }

  bool takes_masks() const override { return !blocks(); }
  std::optional<Index> target_offset(Index size) const override {
    return blocks() ? std::optional(size / 2) : std::nullopt;
  }
  std::optional<TokenId> never_predicted() const override { return options().tokens.mask; }

 protected:
  Example make(records::Record& record) const override {
    records::Scratch scratch;
    records::Tally tally;
    // With blocks the mask is the objective's own; a corpus has none then.
    corruption_->apply(record, scratch, tally);
    Example out = example_of(record);
    out.divisor = static_cast<double>(tally.ordinary);
    out.sparse = blocks();  // both halves have the same positions
    return out;
  }

 private:
  bool blocks() const { return options().mdlm.block_size > 0; }

  std::unique_ptr<records::Corruption> corruption_;
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Mdlm>(options);
}

const ObjectiveKind kMdlm{"mdlm",
                          "tokens hidden at a rate drawn for each sequence: masked diffusion",
                          "MDLM, Sahoo et al. 2024, arXiv:2406.07524; with blocks BD3-LM, Arriola "
                          "et al. 2025, arXiv:2503.09573",
                          {.options = {"block_size", "mask", "drop"},
                           .two_token_types = [](const ObjectiveOptions&) { return true; }},
                          read_objective};
const ObjectiveRegistration kMdlmRegistration{kMdlm};

}  // namespace

}  // namespace masque::train
