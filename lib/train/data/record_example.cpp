#include "train/data/record_example.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/masks.hpp"
#include "model/variants.hpp"

namespace masque::train {

namespace {

std::string_view name_of(model::Streams streams) {
  switch (streams) {
    case model::Streams::kOne: return "one stream";
    case model::Streams::kTwo: return "two streams";
    case model::Streams::kTowers: return "two towers";
    case model::Streams::kFixedKeys: break;
  }
  return "keys and values from the embeddings";
}

std::string_view name_of(model::HeadKind head) {
  switch (head) {
    case model::HeadKind::kNone: return "no head";
    case model::HeadKind::kMasked: return "a masked-LM head";
    case model::HeadKind::kCausal: return "a causal-LM head";
    case model::HeadKind::kEnergy: return "energies";
    case model::HeadKind::kText: return "a regression head";
    case model::HeadKind::kDiscriminator: break;
  }
  return "a discriminator's head";
}

[[noreturn]] void refuse(const DesignNeeds& needs, std::string_view found,
                         std::string_view expected) {
  throw UsageError(fmt::format("{} {}: the model has {}, expected {}", field("objective"),
                               needs.objective, found, expected));
}

/// Refuses parts of a design through which a row would read what the objective's masks hide.
void check_masks(const DesignNeeds& needs, const model::Design& design) {
  using nn::MaskSupport;
  // A query stream reads in some order, as a causal model does.
  const bool ordered =
      design.mask == model::DefaultMask::kCausal || needs.streams == model::Streams::kTwo;
  const bool full =
      design.mask == model::DefaultMask::kFull && !needs.own_masks && design.variants.masks.empty();
  const MaskSupport wanted = ordered ? MaskSupport::kCausal
                             : full  ? MaskSupport::kFull
                                     : MaskSupport::kAny;
  const model::DesignMasks found = model::mask_support(design);
  if (needs.allow_leak || found.masks <= wanted) return;
  throw UsageError(
      fmt::format("{} {}: {} obeys only the masks {}, so positions would read what "
                  "they predict; use another, or {}",
                  field("objective"), needs.objective, found.part, nn::masks_text(found.masks),
                  field("allow_leak")));
}

}  // namespace

std::optional<mask::Mask> bound_mask(const std::string& expression, Index n) {
  if (expression == "full") return std::nullopt;
  return mask::parse_mask(expression).bind({n, n});
}

records::Record dropped_record(const CorpusItem& item, std::uint64_t epoch,
                               const records::Corruption* drop) {
  records::Record record;
  record.number = item.number;
  record.epoch = epoch;
  record.place = item.place;
  record.ids.assign(item.ids.begin(), item.ids.end());
  if (!item.segments.empty()) {
    record.seg.present = true;
    record.seg.values.assign(item.segments.begin(), item.segments.end());
  }
  if (!item.positions.empty()) {
    record.pos.present = true;
    record.pos.values.assign(item.positions.begin(), item.positions.end());
  }
  if (!item.labels.empty()) {
    record.labels.present = true;
    record.labels.values.assign(item.labels.begin(), item.labels.end());
  }
  if (!item.weights.empty()) {
    record.has_weights = true;
    record.weights.assign(item.weights.begin(), item.weights.end());
  }
  if (drop != nullptr) {
    records::Scratch scratch;
    records::Tally tally;
    drop->apply(record, scratch, tally);
  }
  if (!item.mask.empty()) record.mask = std::string(item.mask);
  return record;
}

Example example_of(records::Record& record) {
  Example out;
  out.ids = std::move(record.ids);
  const auto n = out.ids.size();
  if (record.pos.present) out.positions.assign(record.pos.values.begin(), record.pos.values.end());
  if (record.seg.present) out.segments.assign(record.seg.values.begin(), record.seg.values.end());
  if (record.mask) out.mask = bound_mask(*record.mask, out.size());
  for (std::size_t i = 0; record.labels.present && i < n; ++i) {
    if (record.labels.values[i] == records::kNoLabel) continue;
    out.rows.push_back(static_cast<Index>(i));
    out.targets.push_back(record.labels.values[i]);
    if (record.has_weights) out.weights.push_back(record.weights[i]);
  }
  return out;
}

void adapt_design(const DesignNeeds& needs, model::Design& design) {
  if (design.streams == model::Streams::kOne) design.streams = needs.streams;
  if (design.streams != needs.streams) {
    refuse(needs, name_of(design.streams), name_of(needs.streams));
  }
  if (const auto problem = model::mixer_problem(design)) {
    throw UsageError(fmt::format("{} {} with {} {}: {}", field("objective"), needs.objective,
                                 field("mixer"), model::mixer_name(design), *problem));
  }
  if (const auto problem = model::input_residual_problem(design)) {
    throw UsageError(fmt::format("{} {} with {}: {}", field("objective"), needs.objective,
                                 field("no_input_residual"), *problem));
  }
  if (const auto problem = model::late_position_problem(design)) {
    throw UsageError(fmt::format("{} {} with {}: {}", field("objective"), needs.objective,
                                 field("late_positions"), *problem));
  }
  if (design.mask == model::DefaultMask::kFull) design.mask = needs.mask;
  const bool other = needs.other_mask && design.mask == model::DefaultMask::kOthers;
  if (design.mask != needs.mask && !other) {
    refuse(needs, fmt::format("the mask {}", model::default_mask_name(design.mask)),
           model::default_mask_name(needs.mask));
  }
  if (design.head.kind == model::HeadKind::kNone) design.head.kind = needs.head;
  if (design.head.kind != needs.head) refuse(needs, name_of(design.head.kind), name_of(needs.head));
  if (const auto problem = model::shifted_head_problem(design)) {
    throw UsageError(fmt::format("{} {} with {}: {}", field("objective"), needs.objective,
                                 field("head_shifted"), *problem));
  }
  // XLNet's segments are relative: it has no table of them.
  if (needs.segments && design.position != model::PositionType::kXlnet) {
    if (design.type_vocab_size == 0) design.type_vocab_size = 2;
    if (design.type_vocab_size < 2) refuse(needs, "one token type", "two, for sources and targets");
  }
  if (design.vocab_size == 0) design.vocab_size = needs.vocab_size;
  if (design.vocab_size < needs.vocab_size) {
    refuse(needs, fmt::format("a vocabulary of {}", design.vocab_size),
           fmt::format("the tokenizer's {}", needs.vocab_size));
  }
  if (!design.variants.masks.empty()) design.mask = model::DefaultMask::kFull;
  if (!design.mask_token_id && needs.mask_token >= 0) design.mask_token_id = needs.mask_token;
  if (needs.streams == model::Streams::kFixedKeys && !design.mask_token_id) {
    refuse(needs, "no mask token", "a mask token, from which its queries start");
  }
  check_masks(needs, design);
}

}  // namespace masque::train
