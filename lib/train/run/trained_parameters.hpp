// Which parameters are trained, and at which share of the learning rate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/network/parameters.hpp"

namespace masque::train {

/// A pattern is a name of tensors as the checkpoint has them, in which * stands for any text and ?
/// for any letter (the second network's begin with "generator." or "decoder."); or a word:
///
///     embeddings     tables of words, positions and segments, their norm, a projection after them
///     position       tables and other parameters of positions, of the input and of layers
///     attention      queries, keys, values and output, mixers, gated attention units
///     feed_forward   the feed-forward layers
///     norm           every norm
///     bias           every bias, those of norms too
///     head           what stands after the last layer's norm; of a tied head the table is not
///     layer:N        a layer, from 0; layer:A-B several
///
/// Words speak of all networks.
struct TrainedOptions {
  std::vector<std::string> train = {};   ///< what alone is trained; empty: everything
  std::vector<std::string> freeze = {};  ///< what of that is not
  /// PATTERN=FACTOR, in (0, 1e6]: of the learning rate; where several match the last one counts.
  std::vector<std::string> rate_of = {};
  /// R in (0, 1]: layer l of L, from 0, has R^(L − l) of the learning rate, embeddings R^(L + 1),
  /// all else 1; a factor of `rate_of` multiplies it. Clark et al. 2020, arXiv:2003.10555; Bao et
  /// al. 2021, arXiv:2106.08254.
  std::optional<double> layer_decay = {};
};

/// The tensors of a network.
struct TrainedNetwork {
  Index layers = 0;                   ///< different ones
  const ParameterMap* map = nullptr;  ///< its places in the parameters; must stay during the call
};

/// Sets Parameter::trained and rate of `parameters` as `options` say; what a design never trains
/// stays as it is. Of a parameter that `networks` share the first one says what it is; one of none
/// belongs to the head. Throws UsageError for a pattern that matches nothing, factors and decays
/// out of range, and if nothing is left to train.
void choose_trained(const TrainedOptions& options, std::span<const TrainedNetwork> networks,
                    Parameters<float>& parameters);

/// Number of values of `parameters` that are trained.
Index count_trained(const Parameters<float>& parameters);

}  // namespace masque::train
