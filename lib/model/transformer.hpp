// What runs under Model, for one type of numbers.
#pragma once

#include <memory>
#include <optional>

#include "model/masks.hpp"
#include "model/model.hpp"
#include "model/pass.hpp"
#include "model/prepared.hpp"

namespace masque::model {

/// A prepared model with the masks and streams that it is to run with. Thread-safe.
template <class T>
class Transformer final : public Model {
 public:
  /// Takes `model`, the `encoder` that it reads (of a design with SourceDesign; else nullptr), and
  /// copies what it needs of `options`. Throws UsageError for options that do not fit the model.
  Transformer(PreparedModel<T> model, const ModelOptions& options,
              std::unique_ptr<const Transformer> encoder = nullptr);

  const Design& design() const override { return model_.design; }
  kernel::Precision precision() const override { return model_.precision; }
  const Model* encoder() const override { return encoder_.get(); }
  const std::vector<std::string>& unused() const override { return model_.unused; }
  std::vector<double> run(const Batch& batch, const Request& request,
                          Observer* observer) const override;
  std::unique_ptr<KeyValueCache> make_cache(Index sequences, bool own_masks) const override;

 private:
  Batch checked(const Batch& batch, const KeyValues<T>* cache) const;
  /// Throws UsageError for requests that the design's variants cannot answer.
  void check_variants(const Request& request) const;
  /// What the encoder makes of the sources of `batch`; nothing if it has none. Throws UsageError
  /// where `cache` (or nullptr) has not read them either.
  std::optional<SourceStates<T>> read_sources(const Batch& batch, KeyValues<T>* cache) const;
  void number_positions(const KeyValues<T>* cache, Batch& batch) const;
  /// Shows the logits of the states x of `rows`.
  void give_logits(const Batch& batch, std::span<const Index> rows, MatrixView<const T> x,
                   Observer& observer) const;
  std::vector<double> use_head(const Batch& batch, const Request& request,
                               std::span<const Index> rows, MatrixView<const T> states,
                               Observer* observer) const;

  PreparedModel<T> model_;
  std::unique_ptr<const Transformer> encoder_;
  LayerMasks masks_;
  std::unique_ptr<const LayerMasks> detector_masks_;  ///< masks of the detector
  PassSettings settings_;
  bool restricted_;  ///< by masks, keys or query of the options
};

}  // namespace masque::model
