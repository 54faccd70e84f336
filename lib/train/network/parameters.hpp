// The numbers that training changes: all tensors of a model in one piece of memory, and the
// gradients of those that are trained in another.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/checkpoint/placed.hpp"
#include "model/weights.hpp"
#include "tensor/matrix.hpp"

namespace masque::train {

/// One tensor.
struct Parameter {
  std::string name;     ///< unique
  std::string start;    ///< names the random numbers that it starts with; empty: the name
  Index rows = 0;       ///< a vector is one row
  Index columns = 0;    ///< inputs of a matrix
  bool decays = false;  ///< whether weight decay applies: matrices and tables
  bool trained = true;  ///< else it stays as it is, and has no gradient
  double rate = 1;      ///< its share of the learning rate
  /// Gradients stand in memory from the lowest of these to the highest, then in the order of the
  /// list: the backward pass is through with high ones first.
  Index depth = 0;
  Index offset = 0;           ///< first element in the memory of the values
  Index gradient_offset = 0;  ///< first element in the memory of the gradients, once it is there

  /// Number of elements.
  Index size() const { return rows * columns; }
};

/// Returns the elements of the parameter `p` in `all`, the memory of all of them, where they begin
/// at `first`.
template <class T>
std::span<T> elements_of(std::span<T> all, Index first, const Parameter& p) {
  return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(p.size()));
}

/// Tensors with values and gradients. T is float, double or `std::complex<double>`.
template <class T>
class Parameters {
 public:
  /// Adds `parameter`, of at least one element, as a tensor of zeros; fills in its `offset`.
  /// Returns its index. Views taken before are no longer valid, and all gradients are 0.
  Index add(Parameter parameter);

  /// Gives back memory that nothing was added to. Views taken before are no longer valid.
  void fit();

  /// Number of tensors.
  Index count() const { return static_cast<Index>(list_.size()); }
  /// Number of elements of all tensors. O(count()).
  Index size() const {
    Index sum = 0;
    for (const Parameter& parameter : list_) sum += parameter.size();
    return sum;
  }
  /// What parameter i is: from 0 to less than count(). Ends with the next add().
  const Parameter& operator[](Index i) const { return list_[static_cast<std::size_t>(i)]; }
  /// Sets whether parameter `i` is `trained`, and at which share `rate` of the learning rate. Views
  /// of gradients taken before are no longer valid, and all gradients are 0.
  void set_training(Index i, bool trained, double rate);

  /// The values of parameter `i`, `[rows, columns]`. Valid until add() or fit().
  MatrixView<T> value(Index i) {
    const Parameter& p = (*this)[i];
    return {values_.data() + p.offset, p.rows, p.columns};
  }
  /// The gradient of parameter `i`, `[rows, columns]`; of one that is not trained a view without
  /// data, rows and columns. The first call after add() or set_training() makes the memory of all,
  /// zeros; so it is not for several threads.
  MatrixView<T> gradient(Index i) {
    make_gradients();
    const Parameter& p = (*this)[i];
    if (!p.trained) return {};
    return {gradients_.data() + p.gradient_offset, p.rows, p.columns};
  }
  /// All values, with a few zeros between tensors: each begins at a multiple of 64 bytes.
  std::span<T> values() { return values_.span(); }
  /// The gradients of trained tensors, in the same way.
  std::span<T> gradients() {
    make_gradients();
    return gradients_.span();
  }
  /// Sets all gradients to 0.
  void clear_gradients();

 private:
  void make_gradients();

  std::vector<Parameter> list_;
  Matrix<T> values_;
  Matrix<T> gradients_;
  bool has_gradients_ = false;  ///< the memory is that of the list
  Index used_ = 0;
};

/// Which parameter stands at a place of a model.
class ParameterMap {
 public:
  static constexpr Index kNone = -1;  ///< no parameter

  /// Index in Parameters of the weight of `role` in `layer`, which counts different weights; `part`
  /// of several. kNone: the model has none.
  Index weight(model::Role role, Index layer = 0, Index part = 0) const {
    return find({role, false, layer, part});
  }
  /// Index in Parameters of the bias of `role` in `layer`; `part` of several. kNone: the model has
  /// none.
  Index bias(model::Role role, Index layer = 0, Index part = 0) const {
    return find({role, true, layer, part});
  }
  /// Puts `parameter` at the place of `role`, `layer` and `part`: the `bias` there or the weight.
  void set(model::Role role, bool bias, Index layer, Index part, Index parameter) {
    places_[{role, bias, layer, part}] = parameter;
  }
  /// That of the model's detector (model/detector.hpp), which for_each() leaves out; empty without
  /// one.
  const ParameterMap& detector() const {
    static const ParameterMap kEmpty;
    return detector_.empty() ? kEmpty : detector_[0];
  }
  /// The same to be filled, added if there is none.
  ParameterMap& add_detector() {
    if (detector_.empty()) detector_.resize(1);
    return detector_[0];
  }
  /// Whether the model has a detector.
  bool has_detector() const { return !detector_.empty(); }
  /// Calls `visit`(role, bias, layer, part, parameter) for all, in the order of these.
  template <class F>
  void for_each(F visit) const {
    for (const auto& place : places_)
      std::apply([&](auto... parts) { visit(parts..., place.second); }, place.first);
  }

 private:
  using Key = std::tuple<model::Role, bool, Index, Index>;
  Index find(const Key& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? kNone : found->second;
  }
  std::map<Key, Index> places_;
  std::vector<ParameterMap> detector_;  ///< one, or none
};

/// Whether something of `parameters` at the places `map`, or at those of its detector, is trained.
template <class T>
bool any_trained(const ParameterMap& map, const Parameters<T>& parameters);

/// Adds the parameters of a model and its detector to `parameters`, zeros, one for each place of
/// the tensors of its `plan` and of `head` (nullptr: none), named as in the file after `prefix`.
/// Returns their places. Places of the model that `shared` has are taken from there. `last`: the
/// model's gradients are complete after those of all others, as those of an encoder whose states a
/// decoder reads.
template <class T>
ParameterMap add_model(const model::ModelPlan& plan, const model::HeadPlan* head,
                       const std::string& prefix, const ParameterMap& shared,
                       Parameters<T>& parameters, bool last = false);

/// Copies a checkpoint's `weights` to the `parameters` at the same places of `map`. Returns the
/// names of those that have no weight of their shape there, sorted: they stay as they are. A
/// detector without any weights does so as a whole, and is not among them.
std::vector<std::string> copy_weights(const model::ModelWeights<float>& weights,
                                      const ParameterMap& map, Parameters<float>& parameters);

/// Returns the values at the places `map` of a model of `design`, for saving: views of
/// `parameters`, valid as those of Parameters::value.
template <class T>
model::ModelWeights<T> weights_of(const model::Design& design, const ParameterMap& map,
                                  Parameters<T>& parameters);

}  // namespace masque::train
