// Asks a network itself whether a row reads what it predicts, before training begins.
#pragma once

#include <cstdint>
#include <optional>

#include "train/data/corpus.hpp"
#include "train/data/objective.hpp"
#include "train/network/network.hpp"

namespace masque::train {

/// A token that reaches a row which predicts it, although masks hide it from that row.
struct FoundLeak {
  Index sequence = 0;     ///< of the corpus, from 0
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
