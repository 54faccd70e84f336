// Ways to let a trained model read longer texts: positions, normalizers and masks, and all their
// combinations.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mask/expression.hpp"
#include "model/model.hpp"
#include "model/treatment.hpp"

namespace masque::length {

/// What is changed in a model. Cheap to copy.
struct LengthTreatment {
  std::shared_ptr<const model::PositionTreatment> position;
  std::string normalizer = "own";      ///< or as nn::parse_normalizer takes it
  std::vector<mask::MaskLayer> masks;  ///< instead of the model's mask; empty: the model's own
  /// Keys at this distance or more are hidden (the mask super(window): one key less on each
  /// side than LayerDesign::window); 0: none are.
  Index window = 0;

  /// "own", "window:64", or the masks.
  std::string mask_text() const;
  /// As a model is opened with it. `log_n` without arguments gets the trained length as base and as
  /// clip: the factor is max(1, log n / log trained), so that nothing changes up to that length.
  /// Su 2022, kexue.fm/archives/9034.
  model::ModelOptions options(Index trained, kernel::Precision precision) const;
};

/// Lists as given on the command line.
struct TreatmentLists {
  std::string positions = "own";       ///< with commas: see model::parse_position_treatment
  std::string normalizers = "own";     ///< with commas
  std::optional<std::string> masks;    ///< with semicolons: masks have commas of their own
  std::optional<std::string> windows;  ///< with commas; the own mask goes first
};

/// Every combination; masks vary fastest. Throws UsageError for unknown words, with the
/// option, and for masks together with windows.
std::vector<LengthTreatment> make_treatments(const TreatmentLists& lists);

}  // namespace masque::length
