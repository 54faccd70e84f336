#include "train/data/objective.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/registry/registry.hpp"
#include "records/selection.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

using ObjectiveKinds = Registry<ObjectiveKind>;

}  // namespace

ObjectiveRegistration::ObjectiveRegistration(const ObjectiveKind& kind) {
  ObjectiveKinds::of_process().add(kind);
}

std::span<const ObjectiveKind* const> objectives() { return ObjectiveKinds::of_process().all(); }

const ObjectiveKind& find_objective(std::string_view name) {
  if (const ObjectiveKind* found = ObjectiveKinds::of_process().find(name)) return *found;
  throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("objective"),
                               escape(name), ObjectiveKinds::of_process().names()));
}

const ObjectiveKind* objective_made_for(const model::Design& design) {
  for (const ObjectiveKind* kind : objectives()) {
    if (kind->traits.made_for != nullptr && kind->traits.made_for(design)) return kind;
  }
  return nullptr;
}

bool ObjectiveTraits::reads(std::string_view option) const {
  return std::ranges::find(options, option) != options.end();
}

std::string BlockMemory::mask() const {
  return fmt::format("block_memory({},{})", block_size, memory);
}

std::unique_ptr<records::Corruption> make_dropping(records::DropOptions drop, std::uint64_t seed,
                                                   const records::TokenTable& tokens) {
  if (!(drop.rate >= 0 && drop.rate < 1))
    throw UsageError(fmt::format("{}: found {}, expected a share of at least 0 and less than 1",
                                 field("drop"), drop.rate));
  drop.seed = seed;
  return drop.rate == 0 ? nullptr : make_drop(drop, tokens);
}

Objective::Objective(const ObjectiveOptions& options) : options_(options) {
  drop_ = make_dropping(options.drop, options.seed, options.tokens);
  if (options.mask.empty()) return;
  const std::vector<mask::MaskLayer> layers = mask::parse_open_mask_layers(options.mask);
  if (layers.size() != 1 || layers.front().count != 1 || !layers.front().mask.heads().empty())
    throw UsageError(
        fmt::format("{} {}: a list cannot be combined with masks of sequences; use one mask",
                    field("mask"), options.mask));
  mask_ = layers.front().mask;
}

void Objective::check(const Corpus& corpus) const {
  if (corpus.pairs() && !options_.pairs)
    throw InputError(corpus.source(), "sequences with two segments, expected one segment");
  if (!corpus.has_masks()) return;
  if (!takes_masks()) {
    throw UsageError(
        fmt::format("{}: {} has sequences with masks, expected an objective that takes them: mlm, "
                    "mdlm, tta, clm or records",
                    field("objective"), corpus.source()));
  }
  if (drop_) {
    throw UsageError(
        fmt::format("{} cannot be combined with the masks of {}, which refer to positions",
                    field("drop"), corpus.source()));
  }
}

records::Record Objective::record_of(const CorpusItem& item, std::uint64_t epoch) const {
  return dropped_record(item, epoch, drop_.get());
}

Example Objective::masked(Example example, const CorpusItem& item, std::uint64_t epoch) const {
  if (!mask_) return example;
  const mask::Lengths lengths{example.size(), example.size()};
  mask::MaskExpression own = *mask_;
  if (own.open()) {
    const records::RandomSource random(options_.seed, "train mask");
    const PhiloxBlock words = random.stream(epoch, item.number).block(0);
    own = own.closed(records::word_lengths(example.ids, options_.tokens),
                     words[0] | std::uint64_t{words[1]} << 32);
  }
  const mask::Mask mask = own.bind(lengths);
  example.mask = example.mask ? *example.mask & mask : mask;
  return example;
}

records::MlmOptions Objective::mlm_options() const {
  records::MlmOptions mlm = options_.mlm;
  mlm.selection.seed = options_.seed;
  if (options_.tokens.mask < 0 && mlm.mask > 0 && mlm.similar.empty())
    throw UsageError(fmt::format("the tokenizer has no mask token; use another tokenizer or {}",
                                 field("split")));
  return mlm;
}

Example Objective::example(const CorpusItem& item, std::uint64_t epoch) const {
  records::Record record = record_of(item, epoch);
  return masked(make(record), item, epoch);
}

std::vector<Example> first_examples(const Objective& objective, const Corpus& corpus, Index most) {
  std::vector<Example> examples;
  for (Index i = 0; i < std::min(most, corpus.size()); ++i)
    examples.push_back(objective.example(corpus.item(i), 0));
  return examples;
}

RecordNeeds record_needs(const Corpus& corpus) {
  RecordNeeds needs;
  needs.labels = corpus.labels();
  bool orders = corpus.has_masks();
  needs.causal = corpus.has_masks();
  for (Index i = 0; i < corpus.size() && (orders || needs.causal); ++i) {
    const std::string_view mask = corpus.item(i).mask;
    orders = orders && mask.find("xlnet_order(") != std::string_view::npos;
    needs.causal = needs.causal && mask == "causal";
  }
  if (orders) needs.streams = model::Streams::kTwo;
  needs.predicts_next = needs.causal;
  return needs;
}

Example Objective::never_selected_example(const CorpusItem& /*item*/, std::uint64_t /*draw*/,
                                          std::uint64_t /*epochs*/) const {
  check_failed("has_never_selected()", __FILE__, __LINE__);
}

}  // namespace masque::train
