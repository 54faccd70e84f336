// Masked language modelling with every way to select of records/selection.hpp.
#include "records/mlm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Mlm final : public Objective {
 public:
  explicit Mlm(const ObjectiveOptions& given)
      : Objective(given),
        selection_(mlm_options().selection, given.tokens),
        corruption_(make_mlm(mlm_options(), given.tokens)) {
    if (given.mlm.selection.unit == records::Unit::kWords) {
      throw UsageError(
          fmt::format("{} words: a corpus has no field 'words'; use token or word", field("unit")));
    }
    if (!has_never_selected()) return;
    if (given.drop.rate > 0) {
      throw UsageError(
          fmt::format("{} and {} cannot be combined: dropping tokens moves the fixed positions",
                      field("drop"), field(given.mlm.draws > 0 ? "draws" : "fixed_selection")));
    }
    records::MlmOptions anew = mlm_options();
    anew.selection.seed = ~given.seed;
    anew.draws = 0;
    anew.fixed_selection = false;
    anew_ = make_mlm(anew, given.tokens);
  }

  void adapt(model::Design& design) const override {
    adapt_design({.objective = "mlm",
                  .other_mask = true,
                  .segments = options().pairs,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }

  bool takes_masks() const override { return true; }

  bool has_never_selected() const override {
    return options().mlm.draws > 0 || options().mlm.fixed_selection;
  }

  Example never_selected_example(const CorpusItem& item, std::uint64_t draw,
                                 std::uint64_t epochs) const override {
    MASQUE_CHECK(anew_ != nullptr);
    records::Record record = record_of(item, draw);
    const std::vector<bool> selected = ever_selected(record, epochs);
    records::Scratch scratch;
    records::Tally tally;
    anew_->apply(record, scratch, tally);
    for (std::size_t i = 0; i < selected.size(); ++i) {
      if (selected[i]) record.labels.values[i] = records::kNoLabel;
    }
    return masked(example_of(record), item, draw);
  }

 protected:
  Example make(records::Record& record) const override {
    records::Scratch scratch;
    records::Tally tally;
    corruption_->apply(record, scratch, tally);
    return example_of(record);
  }

 private:
  /// What some of the first `epochs` epochs of training selects.
  std::vector<bool> ever_selected(const records::Record& record, std::uint64_t epochs) const {
    const std::uint64_t draws =
        std::min(options().mlm.fixed_selection ? 1 : options().mlm.draws, epochs);
    std::vector<bool> selected(record.size(), false);
    records::Scratch scratch;
    records::Tally tally;
    for (std::uint64_t epoch = 0; epoch < draws; ++epoch) {
      selection_.select(record, epoch, options().tokens, scratch, tally);
      for (std::size_t i = 0; i < selected.size(); ++i) {
        if (scratch.flags[i] != 0) selected[i] = true;
      }
    }
    return selected;
  }

  records::Selection selection_;
  std::unique_ptr<records::Corruption> corruption_;
  std::unique_ptr<records::Corruption> anew_;  ///< other numbers, never static
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Mlm>(options);
}

const ObjectiveKind kMlm{
    "mlm",
    "selected tokens are hidden, replaced or kept, and predicted",
    "BERT, Devlin et al. 2018, arXiv:1810.04805",
    {.options = {"rate", "unit", "choice", "span_p", "span_longest", "split", "replace", "draws",
                 "fixed_selection", "mask", "block_size", "memory", "drop"},
     .two_token_types = [](const ObjectiveOptions&) { return true; },
     .made_for =
         [](const model::Design& design) {
           return design.streams == model::Streams::kOne &&
                  design.head.kind == model::HeadKind::kMasked;
         },
     .score = evaluate::ScoreKind::kPll},
    read_objective};
const ObjectiveRegistration kMlmRegistration{kMlm};

}  // namespace

}  // namespace masque::train
