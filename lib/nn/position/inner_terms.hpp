// A position scheme that stands on another one: what it does not do itself is the other's.
#pragma once

#include <memory>
#include <utility>

#include "nn/position/position_scheme.hpp"

namespace masque::nn {

/// Terms that pass everything on to those of another scheme, which a derived
/// class makes in its constructor.
template <class T>
class InnerTerms : public PositionTerms<T> {
 public:
  void input(MatrixView<T> x) const override { inner_->input(x); }
  void input_backward(MatrixView<const T> x, MatrixView<T> d_x) override {
    inner_->input_backward(x, d_x);
  }
  void query_key(MatrixView<T> query, MatrixView<T> key) const override {
    inner_->query_key(query, key);
  }
  void query_key_backward(MatrixView<T> d_query, MatrixView<T> d_key) override {
    inner_->query_key_backward(d_query, d_key);
  }
  const ScoreBias<T>* bias() const override { return std::as_const(*inner_).bias(); }
  ScoreTermsGradient<T>* bias_gradient() override { return inner_->bias_gradient(); }
  WeightTerms<T>* weight_terms() override { return inner_->weight_terms(); }
  ValueTerms<T>* value_terms() override { return inner_->value_terms(); }

 protected:
  /// The terms of the other scheme; not null after construction.
  std::unique_ptr<PositionTerms<T>> inner_;
};

}  // namespace masque::nn
