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
  Index sequence = 0;  ///< of the corpus
  Index row = 0;
  Index token = 0;        ///< its place in the sequence
  double difference = 0;  ///< largest one of the row's last state
};

/// In a few short examples of the corpus, as an epoch corrupts them, each target that stands in
/// the input where the masks of no layer let it through to its row, directly or by way of other
/// rows, is replaced by other tokens: the row's last state must stay, up to 1e-6 of its largest
/// number. Of sequences beyond 1024 tokens ways by other rows are left out. Prepares the network.
/// Cost: some tens of evaluations of one sequence. Throws as Objective::example.
std::optional<FoundLeak> probe_leak(Network<float>& network, const Objective& objective,
                                    const Corpus& corpus);

}  // namespace masque::train
