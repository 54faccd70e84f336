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

/// Immutable, thread-safe.
class TreatableModel {
 public:
  /// Throws as load_model does.
  TreatableModel(const std::string& path, const std::string& family, kernel::Precision precision);

  const std::string& path() const;
  const Design& design() const;
  const std::vector<std::string>& unused() const;
  /// Rows of its table of positions, else the longest sequence that the design names; 0: neither.
  Index trained_length() const;

  /// Most tokens of a sequence that the model reads under a treatment; 0: no limit. Throws
  /// UsageError for a treatment that does not go with the model, or a trained length that is beyond
  /// the table.
  Index longest(const PositionTreatment& treatment, const LengthExtension& extension) const;
  /// The model for sequences of up to extension.length tokens. Where no table nor mixer limits it,
  /// it reads longer ones than the design says. `options` may not have another family nor
  /// precision. Packs the weights. Throws as `longest`, and as open_model.
  std::unique_ptr<Model> open(const PositionTreatment& treatment, const LengthExtension& extension,
                              const ModelOptions& options) const;

 private:
  TreatedPositions treated(const PositionTreatment& treatment,
                           const LengthExtension& extension) const;

  kernel::Precision precision_;
  std::variant<LoadedModel<float>, LoadedModel<double>> loaded_;
};

}  // namespace masque::model
