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
  std::shared_ptr<const model::PositionTreatment> position;  ///< make_treatments() sets it
  std::string normalizer = "own";      ///< or as nn::parse_normalizer takes it
  std::vector<mask::MaskLayer> masks;  ///< instead of the model's mask; empty: the model's own
  /// Keys at this distance or more are hidden (the mask super(window): one key less on each
  /// side than LayerDesign::window); 0: none are.
  Index window = 0;

  /// "own", "window:64", or the masks.
  std::string mask_text() const;
  /// Returns the options with which a model computed in `precision` is opened, for its normalizer
  /// and masks; position and window are not in them. `log_n` without arguments gets the length
  /// `trained` (tokens, as 2 if less) as base and as clip: the factor is max(1, log n / log
  /// trained), so that nothing changes up to that length. Su 2022, kexue.fm/archives/9034.
  model::ModelOptions options(Index trained, kernel::Precision precision) const;
};

/// Lists as given on the command line.
struct TreatmentLists {
  std::string positions = "own";       ///< with commas: see model::parse_position_treatment
  std::string normalizers = "own";     ///< with commas
  std::optional<std::string> masks;    ///< with semicolons: masks have commas of their own
  std::optional<std::string> windows;  ///< with commas; the own mask goes first
};

/// Returns every combination of `lists`; masks vary fastest, positions slowest. Throws UsageError
/// for unknown words, with the option, for words that occur twice, and for masks together with
/// windows.
std::vector<LengthTreatment> make_treatments(const TreatmentLists& lists);

}  // namespace masque::length
