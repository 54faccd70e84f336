// Designs of the families that load.
#pragma once

#include "train/network_cases.hpp"

namespace masque::test {

/// Those of the checkpoints of tests/data/model, without their weights; XLNet's with both streams
/// and with one. Where a checkpoint has no head, a vocabulary tied to the word table.
std::vector<NetworkCase> family_cases();

}  // namespace masque::test
