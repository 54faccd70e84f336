// The target from the source, of an encoder–decoder.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Seq2seq final : public Objective {
 public:
  using Objective::Objective;

  void adapt(model::Design& design) const override {
    if (!design.source) {
      throw UsageError(fmt::format(
          "{} seq2seq: needs {} with an encoder–decoder; ckpt new makes a T5 or BART to start from",
          field("objective"), field("init")));
    }
    adapt_design({.objective = "seq2seq",
                  .mask = model::DefaultMask::kCausal,
                  .head = model::HeadKind::kCausal,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }

  void check(const Corpus& corpus) const override {
    if (!corpus.pairs()) {
      throw InputError(corpus.source(), "sequences with one segment, expected sources and targets");
    }
    Objective::check(corpus);
  }

  std::optional<Index> target_offset(Index /*size*/) const override { return 1; }

 protected:
  /// The target's tokens but the last one, each of which predicts the next: read_corpus() has put
  /// the token in front that begins a target.
  Example make(records::Record& record) const override {
    const auto& segments = record.seg.values;
    const auto source = std::ranges::find(segments, 1) - segments.begin();
    Example example;
    if (source == std::ssize(record.ids)) return example;  // without a target
    example.source.assign(record.ids.begin(), record.ids.begin() + source);
    example.ids.assign(record.ids.begin() + source, record.ids.end() - 1);
    example.targets.assign(record.ids.begin() + source + 1, record.ids.end());
    for (Index i = 0; i < example.size(); ++i) example.rows.push_back(i);
    return example;
  }
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Seq2seq>(options);
}

const ObjectiveKind kSeq2seq{
    "seq2seq",
    "of pairs the target from the source, by an encoder–decoder (T5, BART)",
    "Sutskever et al. 2014, arXiv:1409.3215; Vaswani et al. 2017, arXiv:1706.03762",
    {.made_for = [](const model::Design& design) { return design.source.has_value(); },
     .reads_sources = true},
    read_objective};
const ObjectiveRegistration kSeq2seqRegistration{kSeq2seq};

}  // namespace

}  // namespace masque::train
