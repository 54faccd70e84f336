// From sequences of a corpus to records of lib/records and on to examples, and what objectives ask
// of a design in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/design.hpp"
#include "records/corruption.hpp"
#include "train/data/corpus.hpp"
#include "train/data/example.hpp"

namespace masque::train {

/// The sequence as a record of that epoch, without what `drop` (nullptr: nothing) takes out of it.
records::Record dropped_record(const CorpusItem& item, std::uint64_t epoch,
                               const records::Corruption* drop);

/// The record's ids, positions, segments, weights and mask; its rows are those with a label, and
/// their targets the labels. Labels of language models stand where the model predicts them (at the
/// token before, or after), so nothing moves. Takes the ids out of the record.
Example example_of(records::Record& record);

/// The mask of an expression for n tokens; none for "full".
std::optional<mask::Mask> bound_mask(const std::string& expression, Index n);

/// What an objective needs of a design.
struct DesignNeeds {
  std::string_view objective;  ///< for messages
  model::Streams streams = model::Streams::kOne;
  model::DefaultMask mask = model::DefaultMask::kFull;
  model::HeadKind head = model::HeadKind::kMasked;
  bool other_mask = false;  ///< with kFull: the mask that hides each token from itself will do too
  bool segments = false;    ///< two of them
  /// Examples bring masks that hide later tokens from some rows.
  bool own_masks = false;
  bool allow_leak = false;  ///< what lets hidden tokens through is not refused
  TokenId vocab_size = 0;
  TokenId mask_token = -1;  ///< -1: the tokenizer has none
};

/// Sets fields of the design that still have their defaults. Throws UsageError for others.
void adapt_design(const DesignNeeds& needs, model::Design& design);

}  // namespace masque::train
