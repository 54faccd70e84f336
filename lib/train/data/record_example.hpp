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

/// Returns the sequence `item` as a record of `epoch`, without what `drop` (nullptr: nothing) takes
/// out of it.
records::Record dropped_record(const CorpusItem& item, std::uint64_t epoch,
                               const records::Corruption* drop);

/// Returns an example with the ids, positions, segments, weights and mask of `record`; its rows are
/// those with a label, and their targets the labels. Labels of language models stand where the
/// model predicts them (at the token before, or after), so nothing moves. Takes the ids out of the
/// record. Throws UsageError for a mask that is none or does not fit.
Example example_of(records::Record& record);

/// Returns the mask of `expression` for `n` tokens; none for "full". Throws UsageError for an
/// expression that is no mask or does not fit.
std::optional<mask::Mask> bound_mask(const std::string& expression, Index n);

/// What an objective needs of a design.
struct DesignNeeds {
  std::string_view objective;                           ///< for messages
  model::Streams streams = model::Streams::kOne;        ///< Design::streams
  model::DefaultMask mask = model::DefaultMask::kFull;  ///< Design::mask
  model::HeadKind head = model::HeadKind::kMasked;      ///< HeadDesign::kind
  bool other_mask = false;  ///< with kFull: the mask that hides each token from itself will do too
  bool segments = false;    ///< two of them
  /// Examples bring masks that hide later tokens from some rows.
  bool own_masks = false;
  bool allow_leak = false;  ///< what lets hidden tokens through is not refused
  TokenId vocab_size = 0;   ///< size of the tokenizer: least size of the model's vocabulary
  TokenId mask_token = -1;  ///< -1: the tokenizer has none
};

/// Sets the fields of `design` that still have their defaults as `needs` say. Throws UsageError for
/// fields that say otherwise, and for parts that let rows read what masks hide from them.
void adapt_design(const DesignNeeds& needs, model::Design& design);

}  // namespace masque::train
