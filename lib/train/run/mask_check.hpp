// Whether the masks of a design fit a corpus and keep from each row what it predicts, before
// training.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mask/flow.hpp"
#include "nn/variant.hpp"
#include "train/data/corpus.hpp"
#include "train/data/objective.hpp"

namespace masque::train {

/// The masks of an example by layer and stream, and where its streams begin: what its rows may have
/// read at the end (mask::follow_flow).
mask::FlowRequest flow_of(const Example& example, const model::Design& design);

/// Which masks the parts of a design must obey for its own mask.
nn::MaskSupport mask_need(const model::Design& design);

/// Gives a design these masks instead of its own (model::set_mask). Throws UsageError, about the
/// field `mask`, for what does not fit it.
void set_given_masks(std::string_view masks, model::Design& design);
/// Throws UsageError if a part of a design does not obey its masks, unless `allow_leak`; `name`
/// says whose masks they are.
void check_parts_obey(const model::Design& design, std::string_view name, bool allow_leak);

/// Whether under these masks (as set_mask takes them) every token reads itself and none after it,
/// so that what is left to predict is the next one. False for what is no mask.
bool ends_with_itself(std::string_view masks);

/// Binds the design's own masks (VariantDesign::mask) to all lengths of the corpus; with `shorter`
/// to all lengths below as well, as tokens are dropped. Throws UsageError for one that does not
/// fit.
void check_mask_lengths(const model::Design& design, const Corpus& corpus, bool shorter);

/// A row that may read its target.
struct ReadTarget {
  Index sequence = 0;  ///< of the corpus
  Index row = 0;
  Index token = 0;   ///< its place
  std::string path;  ///< by which layers, or what was counted
};

/// Follows tokens through the masks of all layers, for the first sequences of the corpus and one of
/// every other length: where the objective says that no row may read its target
/// (Objective::target_offset), one that does. Beyond 512 tokens only what a layer reads by itself
/// is looked at. With labels of the corpus: if every label of the first sequences is the token at
/// its row, the one after or the one before, and all rows read it, the first of them.
std::optional<ReadTarget> find_read_target(const model::Design& design, const Objective& objective,
                                           const Corpus& corpus);

/// Throws UsageError if there is one; `name` is the objective's.
void refuse_read_target(std::string_view name, const model::Design& design,
                        const Objective& objective, const Corpus& corpus);

}  // namespace masque::train
