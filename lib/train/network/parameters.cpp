#include "train/network/parameters.hpp"

#include <algorithm>
#include <complex>
#include <limits>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "model/checkpoint/training_state.hpp"
#include "model/detector.hpp"
#include "model/variants.hpp"
#include "train/network/network_part.hpp"

namespace masque::train {

namespace {

constexpr Index kAlignment = 16;

/// Elements of the memory that a tensor takes.
Index room_of(const Parameter& p) { return round_up(p.size(), kAlignment); }

/// Parameter::depth: embeddings, layers, what stands behind them; 0 where gradients come `last`.
Index depth_of(model::Role role, Index layer, bool last) {
  const NetworkPart part = network_part(role);
  if (last || part == NetworkPart::kEmbeddings || part == NetworkPart::kAllLayers) return 0;
  return part == NetworkPart::kLayers ? 1 + layer : std::numeric_limits<Index>::max();
}

/// Matrices and tables; vectors, and numbers of variants, stay where they are.
bool decays(model::Role role, bool bias) {
  using model::Role;
  if (bias || model::is_norm(role) || model::is_vector(role)) return false;
  return role != Role::kGatedGamma && role != Role::kGatedBeta && role != Role::kTalkingBefore &&
         role != Role::kTalkingAfter && role != Role::kPositionPart &&
         role != Role::kSharedPositionPart;
}

}  // namespace

template <class T>
Index Parameters<T>::add(Parameter parameter) {
  MASQUE_CHECK(parameter.rows > 0 && parameter.columns > 0);
  parameter.offset = used_;
  used_ += room_of(parameter);
  list_.push_back(std::move(parameter));
  has_gradients_ = false;
  if (values_.columns() < used_) {
    Matrix<T> larger = Matrix<T>::zero(1, used_ + used_ / 2);
    std::copy_n(values_.data(), values_.columns(), larger.data());
    values_ = std::move(larger);
  }
  return count() - 1;
}

template <class T>
void Parameters<T>::fit() {
  if (values_.columns() == used_) return;
  Matrix<T> exact(1, used_);
  std::copy_n(values_.data(), used_, exact.data());
  values_ = std::move(exact);
}

template <class T>
void Parameters<T>::set_training(Index i, bool trained, double rate) {
  Parameter& p = list_[static_cast<std::size_t>(i)];
  p.trained = trained;
  p.rate = rate;
  has_gradients_ = false;
}

template <class T>
void Parameters<T>::make_gradients() {
  if (has_gradients_) return;
  std::vector<Parameter*> order;
  for (Parameter& p : list_) {
    if (p.trained) order.push_back(&p);
  }
  std::ranges::stable_sort(order, {}, &Parameter::depth);
  Index used = 0;
  for (Parameter* p : order) {
    p->gradient_offset = used;
    used += room_of(*p);
  }
  gradients_ = Matrix<T>();  // before there are two
  gradients_ = Matrix<T>::zero(1, used);
  has_gradients_ = true;
}

template <class T>
void Parameters<T>::clear_gradients() {
  constexpr Index kElements = 1 << 18;
  make_gradients();
  kernel::parallel_ranges(gradients_.columns(), kElements, [&](Index begin, Index end) {
    std::fill(gradients_.data() + begin, gradients_.data() + end, T{});
  });
}

template class Parameters<float>;
template class Parameters<double>;
template class Parameters<std::complex<double>>;

template <class T>
bool any_trained(const ParameterMap& map, const Parameters<T>& parameters) {
  bool any = false;
  map.for_each([&](model::Role, bool, Index, Index, Index parameter) {
    any = any || parameters[parameter].trained;
  });
  return any || (map.has_detector() && any_trained(map.detector(), parameters));
}

template bool any_trained(const ParameterMap&, const Parameters<float>&);
template bool any_trained(const ParameterMap&, const Parameters<double>&);
template bool any_trained(const ParameterMap&, const Parameters<std::complex<double>>&);

template <class T>
ParameterMap add_model(const model::ModelPlan& plan, const model::HeadPlan* head,
                       const std::string& prefix, const ParameterMap& shared,
                       Parameters<T>& parameters, bool last) {
  ParameterMap map;
  const model::Design detector =
      plan.design.variants.detector ? model::detector_design(plan.design) : model::Design();
  for (const model::PlacedTensor& tensor : placed_tensors(plan, head)) {
    const model::Design& design = tensor.detector ? detector : plan.design;
    ParameterMap& own = tensor.detector ? map.add_detector() : map;
    for (const model::TensorPart& part : tensor.parts) {
      const auto place = [&](const ParameterMap& of) {
        return tensor.bias ? of.bias(part.role, part.layer, part.part)
                           : of.weight(part.role, part.layer, part.part);
      };
      if (place(own) != ParameterMap::kNone) continue;
      Index parameter = tensor.detector ? ParameterMap::kNone : place(shared);
      if (parameter == ParameterMap::kNone) {
        const model::RoleShape shape = parameter_shape(design, tensor, part);
        Parameter p;
        p.name = prefix + parameter_name(plan, tensor, part);
        // Not the name, which depends on the family: models that differ in one place, and so
        // perhaps in their family, start alike in all others.
        p.start = fmt::format("{}{}role {}, layer {}, part {}", prefix,
                              tensor.detector ? "detector." : "", static_cast<int>(part.role),
                              part.layer, part.part);
        p.rows = shape.rows;
        p.columns = shape.columns;
        p.decays = decays(part.role, tensor.bias);
        p.depth = depth_of(part.role, part.layer, tensor.detector || last);
        if (part.role == model::Role::kMixerPart) {
          p.trained = model::mixer_parameters(design)[static_cast<std::size_t>(part.part)].trained;
        }
        if (model::is_global(part.role) || tensor.fixed) p.trained = false;
        parameter = parameters.add(std::move(p));
      }
      own.set(part.role, tensor.bias, part.layer, part.part, parameter);
    }
  }
  parameters.fit();
  return map;
}

template ParameterMap add_model(const model::ModelPlan&, const model::HeadPlan*, const std::string&,
                                const ParameterMap&, Parameters<float>&, bool);
template ParameterMap add_model(const model::ModelPlan&, const model::HeadPlan*, const std::string&,
                                const ParameterMap&, Parameters<double>&, bool);
template ParameterMap add_model(const model::ModelPlan&, const model::HeadPlan*, const std::string&,
                                const ParameterMap&, Parameters<std::complex<double>>&, bool);

std::vector<std::string> copy_weights(const model::ModelWeights<float>& from,
                                      const ParameterMap& map, Parameters<float>& parameters) {
  std::vector<std::string> missing;
  model::ModelWeights<float> weights = from;  // of views
  map.for_each([&](model::Role role, bool bias, Index layer, Index part, Index parameter) {
    const auto& weight = model::weight_of(weights, role, bias, layer, part);
    const MatrixView<float> to = parameters.value(parameter);
    if (!weight || weight.view.rows != to.rows || weight.view.columns != to.columns) {
      missing.push_back(parameters[parameter].name);
      return;
    }
    for (Index i = 0; i < to.rows; ++i) std::copy_n(weight.view.row(i), to.columns, to.row(i));
  });
  if (map.has_detector() && !from.detector.empty()) {
    const auto more = copy_weights(from.detector[0], map.detector(), parameters);
    missing.insert(missing.end(), more.begin(), more.end());
  }
  std::ranges::sort(missing);
  return missing;
}

template <class T>
model::ModelWeights<T> weights_of(const model::Design& design, const ParameterMap& map,
                                  Parameters<T>& parameters) {
  model::ModelWeights<T> weights;
  weights.layers.resize(static_cast<std::size_t>(count_layers(design)));
  map.for_each([&](model::Role role, bool bias, Index layer, Index part, Index parameter) {
    model::weight_of(weights, role, bias, layer, part) = {parameters.value(parameter), nullptr};
  });
  if (design.head.tied && !weights.decoder.weight) weights.decoder.weight = weights.word_table;
  if (map.has_detector()) {
    weights.detector.push_back(
        weights_of(model::detector_design(design), map.detector(), parameters));
  }
  return weights;
}

template model::ModelWeights<float> weights_of(const model::Design&, const ParameterMap&,
                                               Parameters<float>&);
template model::ModelWeights<double> weights_of(const model::Design&, const ParameterMap&,
                                                Parameters<double>&);

}  // namespace masque::train
