// Buckets of distances: T5's (relative_attention_num_buckets) and DeBERTa's (position_buckets).
#pragma once

#include "base/types.hpp"

namespace masque::nn {

/// The bucket in [0, `buckets`) of a key that is `offset` = key − query positions after the query.
/// Half of the buckets of a direction are exact distances, the others logarithmic up to
/// `max_distance`, the last also for all beyond it. With `bidirectional` keys after the query have
/// the upper half of the buckets, else all have bucket 0. Raffel et al. 2019, arXiv:1910.10683.
Index t5_bucket(Index offset, Index buckets, Index max_distance, bool bidirectional);

/// The bucket of a `distance` query − key: itself up to half of `buckets`, then logarithmic up to
/// `max_distance`, odd in the distance. `buckets` or `max_distance` ≤ 0: the distance. He et al.
/// 2020, arXiv:2006.03654 (v2 and v3 of DeBERTa).
Index disentangled_bucket(Index distance, Index buckets, Index max_distance);

}  // namespace masque::nn
