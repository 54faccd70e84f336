// The detection network of a model that masks softly, as a design of its own. Zhang et al. 2020,
// arXiv:2005.07421, where it is a bidirectional GRU; here it is a small Transformer.
#pragma once

#include <vector>

#include "model/family.hpp"

namespace masque::model {

/// The design of `design.variants.detector`, which must be there: layers as the model's, in its own
/// sizes, with one logit a token (> 0: wrong) from a dense layer without a transform. It has no
/// tables: it reads what enters the model's layers, in which learned and sinusoidal positions are,
/// by way of a projection where its own states have another width; late positions join the model's
/// layers only. Positions that act in attention it has as the model has them: rotary ones of heads
/// of another size have the same base. Throws UsageError for a design that can have no detector:
/// one of several streams or with masks, one without a mask token, one whose positions or
/// convolutions read neighbours before the layers or belong to its family alone; for sizes that do
/// not fit, and for scaled rotary angles with heads of another size.
Design detector_design(const Design& design);

/// The tensors of the detector of `design`, named as those of the family `masque` after
/// "detector."; none without a detector. Throws as detector_design.
std::vector<TensorRow> detector_rows(const Design& design);

}  // namespace masque::model
