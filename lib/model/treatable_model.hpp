// A checkpoint that is read once and opened with treatments for longer texts.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "model/model.hpp"
#include "model/treatment.hpp"
#include "model/weights.hpp"

namespace masque::model {

/// A checkpoint that is read once, to be opened under several treatments of its positions.
/// Immutable, thread-safe.
class TreatableModel {
 public:
  /// Reads the checkpoint at `path` as load_model does, as the `family` of LoadOptions, in double
  /// for a `precision` of kF64, else in float. Throws as load_model.
  TreatableModel(const std::string& path, const std::string& family, kernel::Precision precision);

  /// The path of the checkpoint, as given.
  const std::string& path() const;
  /// The design without a treatment.
  const Design& design() const;
  /// Tensors of the checkpoint that nothing uses, by name.
  const std::vector<std::string>& unused() const;
  /// Tokens: rows of its table of positions, else the longest sequence that the design names, else
  /// DeBERTa's longest distance; 0: none of these.
  Index trained_length() const;

  /// Most tokens of a sequence that the model reads under `treatment` for `extension`; 0: no limit.
  /// Throws UsageError for a treatment that does not go with the model, or a trained length that is
  /// beyond the table.
  Index longest(const PositionTreatment& treatment, const LengthExtension& extension) const;
  /// The model under `treatment`, for sequences of up to `extension.length` tokens. Where
  /// `longest` has no limit, it reads longer ones than the design says.
  /// `options` names no family and has the precision of this object (MASQUE_CHECK). Packs the
  /// weights. Throws as `longest`, and as open_model. The result does not borrow from this object.
  std::unique_ptr<Model> open(const PositionTreatment& treatment, const LengthExtension& extension,
                              const ModelOptions& options) const;

 private:
  TreatedPositions treated(const PositionTreatment& treatment,
                           const LengthExtension& extension) const;

  kernel::Precision precision_;
  std::variant<LoadedModel<float>, LoadedModel<double>> loaded_;
};

}  // namespace masque::model
