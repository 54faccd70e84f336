// Logits of a model as rows of double, whatever the model computes in.
#pragma once

#include <span>

#include "model/model.hpp"

namespace masque::probe {

/// An observer that takes logits one row at a time, as double: f32 and bf16 models give float. The
/// calls of take() come from the threads from which Observer::logits is called.
class LogitRowObserver : public model::Observer {
 public:
  void logits(Index sequence, Index first, MatrixView<const float> rows) final;
  /// Hands each row to take().
  void logits(Index sequence, Index first, MatrixView<const double> rows) final;

 protected:
  /// Takes a row of `sequence`. `row`: its place among Request::rows; `logits`: a view that ends
  /// with the call.
  virtual void take(Index sequence, Index row, std::span<const double> logits) = 0;
};

}  // namespace masque::probe
