// The head of All-Tokens MLM: a vocabulary, and a gate that says how likely the input stands
// unchanged. Clark et al. 2020, arXiv:2003.10555, section 3.4.
#pragma once

#include "train/network/head.hpp"

namespace masque::train {

/// Which parameters make a gate; kNone: no gate.
struct CopyGateParameters {
  Index weight = ParameterMap::kNone;  ///< w, [1, hidden_size]
  Index bias = ParameterMap::kNone;    ///< b, [1, 1]
};

/// Adds a gate's parameters for states of `hidden_size` to `parameters`, zeros: half of the
/// probability is the input's. Names begin with `prefix`.
template <class T>
CopyGateParameters add_copy_gate(Index hidden_size, const std::string& prefix,
                                 Parameters<T>& parameters);

/// p(x) = D [x = input] + (1 − D) softmax(x), D = σ(w · last state + b). Σ_x p(x) = 1.
/// T is float or double. For one thread.
template <class T>
class CopyGate {
 public:
  CopyGate() = default;
  /// With the gate at the places `map` of `parameters`, which must stay.
  CopyGate(const CopyGateParameters& map, Parameters<T>& parameters)
      : map_(map), parameters_(&parameters) {}

  /// Whether there is no gate.
  bool empty() const { return map_.weight == ParameterMap::kNone; }
  /// Whether something of it is trained.
  bool learns() const;
  /// As Head::run of `head` for `task` and `d_last`, with −log p(target) as the loss; `inputs` are
  /// the tokens that stand at the rows, one a row. Draws and offsets of the task are not used. A
  /// row is right if its target has more than half of the probability. With gradients the
  /// vocabulary is gone through twice.
  LossSums<T> run(Head<T>& head, const HeadTask<T>& task, std::span<const TokenId> inputs,
                  MatrixView<T> d_last) const;

 private:
  CopyGateParameters map_;
  Parameters<T>* parameters_ = nullptr;
};

}  // namespace masque::train
