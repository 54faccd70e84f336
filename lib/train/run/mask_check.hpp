// Whether the masks of a design fit a corpus and keep from each row what it predicts, before
// training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mask/flow.hpp"
#include "nn/variant.hpp"
#include "train/data/corpus.hpp"
#include "train/data/objective.hpp"
#include "train/network/network.hpp"

namespace masque::train {

/// Returns the masks of `example` in a model of `design` by layer and stream, and where its streams
/// begin: what its rows may have read at the end (mask::follow_flow).
mask::FlowRequest flow_of(const Example& example, const model::Design& design);

/// Returns which masks the parts of `design` must obey for its own mask.
nn::MaskSupport mask_need(const model::Design& design);

/// Gives `design` these `masks`, in the mask language, instead of its own (model::set_mask). Throws
/// UsageError, about the field `mask`, for what does not fit it.
void set_given_masks(std::string_view masks, model::Design& design);
/// Throws UsageError if a part of `design` does not obey its masks, unless `allow_leak`; `name`
/// says whose masks they are.
void check_parts_obey(const model::Design& design, std::string_view name, bool allow_leak);

/// Whether under these `masks` (as set_mask takes them) every token reads itself and none after it,
/// so that what is left to predict is the next one. Tried at 16 tokens, where masks have no size of
/// their own. False for what is no mask, and for masks from files.
bool ends_with_itself(std::string_view masks);

/// Binds the own masks of `design` (VariantDesign::mask) to all lengths of `corpus`; with `shorter`
/// to all lengths below as well, as tokens are dropped. Throws UsageError for one that does not
/// fit.
void check_mask_lengths(const model::Design& design, const Corpus& corpus, bool shorter);

/// A row that may read its target.
struct ReadTarget {
  Index sequence = 0;  ///< index of the sequence in the corpus, from 0
  Index row = 0;       ///< its place in the example, from 0
  Index token = 0;     ///< its place in the example, from 0
  std::string path;    ///< by which layers, or what was counted
};

/// Follows tokens through the masks of all layers of `design`, for the first 32 sequences of
/// `corpus` and one of every other length: where `objective` says that no row may read its target
/// (Objective::target_offset), returns one that does. Beyond 512 tokens only what a layer reads by
/// itself is looked at. With labels of the corpus: if every label of the first 1000 sequences is
/// the token at its row, the one after or the one before, and all rows read it, returns the first
/// of them. Cost: the third power of the length, a sequence. Throws Interrupted.
std::optional<ReadTarget> find_read_target(const model::Design& design, const Objective& objective,
                                           const Corpus& corpus);

/// Throws UsageError if find_read_target(`design`, `objective`, `corpus`) finds one; `name` is the
/// objective's.
void refuse_read_target(std::string_view name, const model::Design& design,
                        const Objective& objective, const Corpus& corpus);

// Asks a network itself whether a row reads what it predicts, before training begins.

/// A token that reaches a row which predicts it, although masks hide it from that row.
struct FoundLeak {
  Index sequence = 0;     ///< index of the sequence in the corpus, from 0
  Index row = 0;          ///< its place in the example, from 0
  Index token = 0;        ///< its place in the example, from 0
  double difference = 0;  ///< largest one of the row's last state
};

/// Looks for a leak in `network`: in a few rows of the two shortest of the first 32 sequences of
/// `corpus` (of three tokens or more), as epoch 0 of `objective` corrupts them, each target that
/// stands in the input where the masks of no layer let it through to its row, directly or by way of
/// other rows, is replaced by other tokens: the row's last state must stay, up to 1e-6 of its
/// largest number. Returns the first that does not. Of sequences beyond 1024 tokens ways by other
/// rows are left out. Prepares the network. Cost: some tens of evaluations of one sequence. Throws
/// as Objective::example; Interrupted.
std::optional<FoundLeak> probe_leak(Network<float>& network, const Objective& objective,
                                    const Corpus& corpus);

}  // namespace masque::train
