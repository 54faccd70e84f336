#include "train/classify/classify_examples.hpp"

#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "model/masks.hpp"
#include "records/selection.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

ClassifyExamples::ClassifyExamples(const ClassifyTextOptions& options, ClassifierPooling pooling,
                                   const model::Design& design)
    : pooling_(pooling),
      segments_(design.type_vocab_size > 1),
      longest_(design.max_position_embeddings),
      tokens_(options.tokens),
      drop_(make_dropping(options.drop, options.seed, options.tokens)) {
  mask_ = options.mask ? mask::parse_open_mask(*options.mask) : model::open_mask(design);
}

mask::Mask ClassifyExamples::mask_of(std::span<const TokenId> ids) const {
  mask::MaskExpression mask = *mask_;
  if (mask.open()) mask = mask.closed(records::word_lengths(ids, tokens_), 0);
  std::optional<mask::Mask> bound;
  if (const auto problem =
          usage_error_message([&] { bound = mask.bind_sequence(std::ssize(ids)); }))
    throw UsageError(fmt::format("{} {}", field("mask"), *problem));
  return *std::move(bound);
}

void ClassifyExamples::check(const Corpus& corpus) const {
  check_length(corpus, longest_, "the model");
  if (!mask_) return;
  std::set<Index> lengths;
  bool alone = pooling_ == ClassifierPooling::kFirst && corpus.longest() > 1;
  for (Index i = 0; i < corpus.size(); ++i) {
    // Texts of a length have the same mask, but for their words.
    const Index n = corpus.length(i);
    if (!lengths.insert(n).second && !mask_->open()) continue;
    const mask::Mask bound = mask_of(corpus.item(i).ids);
    for (Index k = 1; alone && k < n; ++k) alone = !bound.allows(0, k);
  }
  if (alone) {
    throw UsageError(fmt::format("{} cls: with {} {} the first token reads only itself; use mean",
                                 field("pooling"), field("mask"), mask_->text()));
  }
}

Example ClassifyExamples::whole(const CorpusItem& item, const TextTarget& target) const {
  return example(dropped_record(item, 0, nullptr), target);
}

Example ClassifyExamples::dropped(const CorpusItem& item, std::uint64_t epoch,
                                  const TextTarget& target) const {
  return example(dropped_record(item, epoch, drop_.get()), target);
}

Example ClassifyExamples::example(records::Record record, const TextTarget& target) const {
  record.seg.present = record.seg.present && segments_;
  Example example = example_of(record);
  const Index rows = pooling_ == ClassifierPooling::kFirst ? 1 : example.size();
  for (Index i = 0; i < rows; ++i) example.rows.push_back(i);
  example.targets.assign(static_cast<std::size_t>(rows), target.label);
  example.offsets.assign(static_cast<std::size_t>(rows), -target.number);
  if (mask_) example.mask = mask_of(example.ids);
  return example;
}

}  // namespace masque::train
