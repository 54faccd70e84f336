// Designs of the family `masque` with random weights, and a plain evaluation of them.
#pragma once

#include <string>
#include <vector>

#include "mask/block_map.hpp"
#include "model/weights.hpp"

namespace masque::test {}
namespace masque::model::test {

// Other files of a batch write test:: for masque::test.
using namespace masque::test;

/// A tiny design: members of config.json besides the sizes, `"position": "rope"`. Two layers, width
/// 16, two heads, twelve places, forty tokens.
Design tiny_design(const std::string& members);

/// Random weights of a design, as a trained model has them.
template <class T>
ModelWeights<T> random_weights(const Design& design, std::uint64_t seed);

/// Whether all tensors of the design are the same in both.
bool same_weights(const Design& design, const ModelWeights<float>& a, const ModelWeights<float>& b);

/// Logits (ids, vocabulary) of one sequence by the definitions of nn, one matrix after the other:
/// one stream, own positions learned or none. `mask` is that of all pairs; nullptr: full.
Matrix<double> plain_logits(const Design& design, const ModelWeights<double>& weights,
                            const std::vector<TokenId>& ids, const mask::BlockMap* mask);

}  // namespace masque::model::test
