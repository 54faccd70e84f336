// What lm-train's own record says of how a model was trained.
#pragma once

#include <optional>
#include <string>

#include "store/checkpoint.hpp"
#include "surgery/correction/mlm_correction.hpp"

namespace masque::surgery {

/// The masking of a training run, from the metadata of training.safetensors in a model's folder.
struct TrainingRecord {
  /// What the inputs of the objective look like.
  enum class Inputs {
    kMasked,       ///< with [MASK], by one rate and split
    kWithoutMask,  ///< [MASK] is never among them
    kOther,        ///< with [MASK] by several rules, or unknown
  };
  std::string objective;            ///< "mlm"
  Inputs inputs = Inputs::kOther;   ///< of the objective
  std::optional<MlmRates> rates{};  ///< with kMasked; of a range of rates the mean
  /// Selected tokens became similar ones instead of [MASK]; then inputs is kWithoutMask.
  bool replaces_by_similar = false;

  /// The record next to the weights of `checkpoint`; nothing without the file, or if it is of a
  /// training that names no objective (a classifier). Throws InputError if the file is malformed.
  static std::optional<TrainingRecord> of(const store::Checkpoint& checkpoint);
};

}  // namespace masque::surgery
