// What the objectives that predict every token where it stands have in common: tta, two-tower.
#pragma once

#include <optional>

#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

/// An objective whose input is the text as it is, and whose target at each position is the token
/// there. The design keeps that token from the row that predicts it.
class EveryTokenObjective : public Objective {
 public:
  /// As Objective::Objective, with its `options`.
  using Objective::Objective;

  std::optional<Index> target_offset(Index /*size*/) const final { return 0; }

 protected:
  /// Special tokens are targets too, as in T-TA's released code.
  Example make(records::Record& record) const final {
    record.labels.make(record.size()) = record.ids;
    return example_of(record);
  }
};

}  // namespace masque::train
