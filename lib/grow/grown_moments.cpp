#include "grow/grown_moments.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.hpp"
#include "model/checkpoint/training_state.hpp"

namespace masque::grow {

namespace {

/// Gives each of n copies that have the share s of a weight the share 1 / (n s) of its gradient.
void share_gradients(UnitCopies& units) {
  std::map<Index, double> copies;
  for (const Index from : units.from) ++copies[from];
  if (units.share.empty()) units.share.assign(units.from.size(), 1);
  for (std::size_t i = 0; i < units.from.size(); ++i)
    units.share[i] = 1 / (copies[units.from[i]] * units.share[i]);
}

/// How squares of gradients grow where gradients grow so.
TensorGrowth squared(TensorGrowth growth) {
  for (UnitCopies* units : {&growth.rows, &growth.columns}) {
    for (double& share : units->share) share *= share;
  }
  growth.scale *= growth.scale;
  return growth;
}

/// How moments of one place grow; `info` is the tensor that has them, as (rows, columns).
TensorGrowth moments_growth(WidthSettings settings, const model::PlacedTensor& of,
                            const model::TensorPart& part, const store::TensorInfo& info) {
  // Unequal shares of a weight say nothing of its gradients, which depend on what reads its
  // outputs.
  if (settings.rule == WidthRule::kUnequal) settings.rule = WidthRule::kEqual;
  model::PlacedTensor one;
  one.shape = info.shape;
  one.bias = of.bias;
  one.vector = of.vector;
  one.rows = static_cast<Index>(info.shape[0]);
  one.columns = static_cast<Index>(info.shape[1]);
  one.parts = {part};
  TensorGrowth growth = grow_tensor(settings, one, info.name);
  for (UnitCopies* units : {&growth.rows, &growth.columns}) {
    units->next = {};
    share_gradients(*units);
  }
  growth.scale = 1 / growth.scale;
  growth.shape = {static_cast<std::uint64_t>(growth.rows.size()),
                  static_cast<std::uint64_t>(growth.columns.size())};
  return growth;
}

}  // namespace

GrownMoments::GrownMoments(const std::string& folder, const model::ModelPlan& before,
                           const model::ModelPlan& after, const WidthSettings& settings)
    : before_(before), after_(after), settings_(settings) {
  const std::string path = join(folder, model::kTrainingStateName);
  if (!exists(path)) return;
  state_ = store::open_checkpoint(path);
  model::check_state(*state_, path);
}

void GrownMoments::add(const model::PlacedTensor& from, const model::PlacedTensor& to, bool anew) {
  if (!state_ || from.detector) return;
  for (std::size_t k = 0; k < std::min(from.parts.size(), to.parts.size()); ++k) {
    const std::string name = parameter_name(before_, from, from.parts[k]);
    const std::string larger = parameter_name(after_, to, to.parts[k]);
    const model::RoleShape shape = parameter_shape(settings_.before, from, from.parts[k]);
    const Shape expected{static_cast<std::uint64_t>(shape.rows),
                         static_cast<std::uint64_t>(shape.columns)};
    const auto find = [&](std::string_view what) {
      const store::TensorInfo* info = state_->find(model::state_tensor_name(what, name));
      return info != nullptr && is_float(info->dtype) && info->shape == expected ? info : nullptr;
    };
    const store::TensorInfo* updates =
        state_->find(model::state_tensor_name(model::kStateUpdates, name));
    const store::TensorInfo* first = find(model::kStateFirst);
    const store::TensorInfo* second = find(model::kStateSecond);
    if (updates == nullptr || first == nullptr || second == nullptr ||
        !added_.insert(larger).second)
      continue;
    used_.insert(name);
    const TensorGrowth growth = moments_growth(settings_, from, from.parts[k], *first);
    const auto put = [&](std::string_view what, GrownTensor tensor) {
      store::OutputTensor out;
      out.info.name = model::state_tensor_name(what, larger);
      out.info.dtype = DType::kF32;
      out.info.shape = tensor.growth.shape;
      out.source = grown_elements(*state_, std::move(tensor), DType::kF32);
      weights_.tensors.push_back(std::move(out));
    };
    GrownTensor of_first{.from = first, .growth = growth};
    if (anew) of_first.constant = 0;
    put(model::kStateFirst, std::move(of_first));
    put(model::kStateSecond, {.from = second, .growth = squared(growth)});
    store::OutputTensor number;
    number.info = *updates;
    number.info.name = model::state_tensor_name(model::kStateUpdates, larger);
    number.source = store::source_of(state_->files().front().file, *updates);
    weights_.tensors.push_back(std::move(number));
  }
}

std::string GrownMoments::summary() const {
  std::size_t all = 0;
  for (const store::TensorInfo& tensor : state_->tensors())
    if (tensor.name.starts_with(model::state_tensor_name(model::kStateFirst, ""))) ++all;
  if (added_.empty()) return "no moments of this model: left out";
  std::string text = fmt::format("the optimizer's moments of {} parameters", added_.size());
  const std::size_t others = all - std::min(all, used_.size());
  if (others > 0) text += fmt::format("; those of {} others are left out", others);
  return text;
}

std::optional<store::OutputWeights> GrownMoments::take() {
  if (weights_.tensors.empty()) return std::nullopt;
  weights_.name = model::kTrainingStateName;
  std::ranges::sort(weights_.tensors, {}, [](const auto& tensor) { return tensor.info.name; });
  model::add_state_digests(weights_);
  return std::move(weights_);
}

}  // namespace masque::grow
