// Masked autoencoding by a mask: nobody reads the hidden tokens, whose rows start from [MASK].
// Records may say what is hidden (LabelKind::kHidden).
#include <algorithm>

#include "base/error.hpp"
#include "mask/builtin.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class MaeMask final : public Objective {
 public:
  explicit MaeMask(const ObjectiveOptions& given)
      : Objective(given),
        mae_(
            make_mae({.ratio = given.mae.ratio, .min_keep = given.mae.min_keep, .seed = given.seed},
                     given.tokens)) {
    if (given.tokens.mask < 0)
      throw UsageError("the tokenizer has no mask token, which the objective needs");
  }

  void adapt(model::Design& design) const override {
    adapt_design({.objective = "mae-mask",
                  .segments = options().pairs,
                  .own_masks = true,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }

 protected:
  Example make(records::Record& record) const override {
    if (!record.labels.present) hide(record);
    std::vector<bool> visible(record.size(), true);
    for (std::size_t place = 0; place < record.size(); ++place) {
      if (record.labels.values[place] == records::kNoLabel) continue;
      visible[place] = false;
      record.ids[place] = options().tokens.mask;
    }
    Example out = example_of(record);
    out.mask = mask::columns({out.size(), out.size()}, visible);
    return out;
  }

 private:
  /// Labels of what is hidden.
  void hide(records::Record& record) const {
    const std::size_t n = record.size();
    // Tokens are numbered by place, not by the record's positions, so that what is taken out can be
    // found.
    records::Record taken;
    taken.number = record.number;
    taken.epoch = record.epoch;
    taken.ids = record.ids;
    records::Scratch scratch;
    records::Tally tally;
    mae_->apply(taken, scratch, tally);
    std::vector<std::int32_t>& labels = record.labels.make(n);
    std::fill(labels.begin(), labels.end(), records::kNoLabel);
    for (const records::DroppedToken& token : taken.dropped)
      labels[static_cast<std::size_t>(token.pos)] = token.id;
  }

  std::unique_ptr<records::Corruption> mae_;
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const MaeMask>(options);
}

const ObjectiveKind kMaeMask{"mae-mask",
                             "hidden tokens, from those that all rows may read",
                             "MAE, He et al. 2021, arXiv:2111.06377; kexue.fm/archives/8770",
                             {.options = {"mae_ratio", "drop"}, .reads_dropped = true},
                             read_objective};
const ObjectiveRegistration kMaeMaskRegistration{kMaeMask};

}  // namespace

}  // namespace masque::train
