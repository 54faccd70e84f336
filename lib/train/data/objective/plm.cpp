// Permutation language modelling in two streams: XLNet's own, with the true tokens in the content
// stream, and transformers', whose collator puts [MASK] there.
#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/builtin.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Plm final : public Objective {
 public:
  Plm(const ObjectiveOptions& given, bool hf) : Objective(given), hf_(hf) {
    records::PermOptions perm = given.perm;
    perm.hf = hf;
    perm.seed = given.seed;
    if (hf && given.tokens.mask < 0)
      throw UsageError("the tokenizer has no mask token, which the objective needs");
    if (hf && given.drop.rate > 0) {
      throw UsageError(
          fmt::format("{} cannot be combined with the objective plm-hf, which needs even lengths",
                      field("drop")));
    }
    corruption_ = make_perm(perm, given.tokens);
    if (given.memory) memory_ = mask::parse_mask(given.memory->mask());
  }

  void adapt(model::Design& design) const override {
    adapt_design({.objective = hf_ ? "plm-hf" : "plm",
                  .streams = model::Streams::kTwo,
                  .segments = options().pairs,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }

  void check(const Corpus& corpus) const override {
    Objective::check(corpus);
    if (!hf_) return;
    for (const Index i : corpus.first_of_lengths()) {
      if (corpus.length(i) % 2 == 0) continue;
      throw InputError(fmt::format(
          "{} plm-hf: sequence {} has {} tokens, expected an even number; use {} blocks",
          field("objective"), i + 1, corpus.length(i), field("format")));
    }
  }

 protected:
  Example make(records::Record& record) const override {
    records::Scratch scratch;
    records::Tally tally;
    corruption_->apply(record, scratch, tally);
    const auto n = static_cast<Index>(record.size());
    mask::Mask query = mask::parse_mask(*record.mask).bind({n, n});
    if (memory_) {
      // The order is that within a block; what is before it has been read.
      const mask::Mask block = mask::chunk_band({n, n}, options().memory->block_size, 0, 0);
      query = (query & block) | (memory_->bind({n, n}) & ~block);
    }
    record.mask.reset();
    Example out = example_of(record);
    // In the content stream a token always reads itself too.
    out.mask = query | mask::band({n, n}, 0, 0);
    out.query_mask = query;
    return out;
  }

 private:
  bool hf_;
  std::unique_ptr<records::Corruption> corruption_;
  std::optional<mask::MaskExpression> memory_;  ///< what ObjectiveOptions::memory lets through
};

std::unique_ptr<const Objective> make_own(const ObjectiveOptions& options) {
  return std::make_unique<const Plm>(options, false);
}

std::unique_ptr<const Objective> make_hf(const ObjectiveOptions& options) {
  return std::make_unique<const Plm>(options, true);
}

const ObjectiveKind kPlm{
    "plm",
    "the last tokens of a random order, from those before them in it",
    "XLNet, Yang et al. 2019, arXiv:1906.08237",
    {.options = {"predict", "perm_size", "alpha", "beta", "no_spans", "causal_blocks", "block_size",
                 "memory", "drop"},
     .made_for = [](const model::Design& design) { return design.streams == model::Streams::kTwo; },
     .query_stream = true},
    make_own};
const ObjectiveRegistration kPlmRegistration{kPlm};

const ObjectiveKind kPlmHf{"plm-hf",
                           "the same as transformers has it: [MASK] in the content stream",
                           "transformers, DataCollatorForPermutationLanguageModeling",
                           {.query_stream = true},
                           make_hf};
const ObjectiveRegistration kPlmHfRegistration{kPlmHf};

}  // namespace

}  // namespace masque::train
