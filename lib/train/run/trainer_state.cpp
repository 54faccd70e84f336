#include "train/run/trainer_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "model/checkpoint/training_state.hpp"
#include "train/run/folder_parts.hpp"

namespace masque::train {

namespace {

constexpr const char* kStep = "step";
// More than any run has, and a whole number in every sum.
constexpr std::int64_t kMostUpdates = std::int64_t{1} << 60;

/// One of the numbers that a state has of each element of a parameter.
struct StatePart {
  std::string_view what;
  std::span<float> numbers;
};

std::vector<StatePart> moments_of(Trainer& trainer, const Parameter& p) {
  if (!p.trained) return {};
  OptimizerState& state = trainer.state();
  return {{model::kStateFirst, elements_of(state.first.span(), p.gradient_offset, p)},
          {model::kStateSecond, elements_of(state.second.span(), p.gradient_offset, p)}};
}

std::vector<StatePart> parts_of(Trainer& trainer, Parameters<float>& parameters,
                                const Parameter& p) {
  std::vector<StatePart> parts = moments_of(trainer, p);
  parts.push_back({model::kStateValue, elements_of(parameters.values(), p.offset, p)});
  return parts;
}

Shape shape_of(const Parameter& p) {
  return {static_cast<std::uint64_t>(p.rows), static_cast<std::uint64_t>(p.columns)};
}

bool fits(const store::TensorInfo& tensor, const Parameter& p) {
  return tensor.dtype == DType::kF32 && tensor.shape == shape_of(p);
}

/// A whole number as a tensor of one element.
store::OutputTensor number_tensor(const std::string& name, std::int64_t number) {
  store::OutputTensor tensor;
  tensor.info.name = name;
  tensor.info.dtype = DType::kI64;
  tensor.info.shape = {1};
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  tensor.source = store::Literal{std::move(bytes)};
  return tensor;
}

const store::TensorInfo& need(const store::Checkpoint& state, const std::string& path,
                              const std::string& name) {
  const store::TensorInfo* tensor = state.find(name);
  if (tensor != nullptr) return *tensor;
  if (state.find("values") != nullptr)
    throw InputError(path,
                     "written by an earlier version of this program, which this version cannot "
                     "continue");
  throw InputError(path, fmt::format("no '{}', expected the state of this run", escape(name)));
}

std::int64_t read_updates(const store::Checkpoint& state, const std::string& path,
                          const Parameter& p) {
  const std::string name = model::state_tensor_name(model::kStateUpdates, p.name);
  const store::TensorInfo& tensor = need(state, path, name);
  std::int64_t number = -1;
  if (tensor.dtype == DType::kI64 && tensor.shape == Shape{1})
    state.read(tensor, 0, std::as_writable_bytes(std::span(&number, 1)));
  if (number < 0 || number > kMostUpdates)
    throw InputError(path, fmt::format("{}: expected one whole number", escape(name)));
  return number;
}

}  // namespace

store::OutputWeights trainer_state(Trainer& trainer, Parameters<float>& parameters) {
  store::OutputWeights state;
  state.metadata.emplace_back(fmt::format("masque.{}", kStep), fmt::format("{}", trainer.done()));
  for (Index i = 0; i < parameters.count(); ++i) {
    const Parameter& p = parameters[i];
    for (const StatePart& own : parts_of(trainer, parameters, p)) {
      state.tensors.push_back(
          float_tensor(model::state_tensor_name(own.what, p.name), shape_of(p), own.numbers));
    }
    if (!p.trained) continue;
    state.tensors.push_back(number_tensor(model::state_tensor_name(model::kStateUpdates, p.name),
                                          trainer.state().updates[static_cast<std::size_t>(i)]));
  }
  std::ranges::sort(state.tensors, {}, [](const auto& tensor) { return tensor.info.name; });
  return state;
}

void read_trainer_state(const store::Checkpoint& state, const std::string& path, Trainer& trainer,
                        Parameters<float>& parameters) {
  for (Index i = 0; i < parameters.count(); ++i) {
    const Parameter& p = parameters[i];
    for (const StatePart& own : parts_of(trainer, parameters, p)) {
      const std::string name = model::state_tensor_name(own.what, p.name);
      const store::TensorInfo& tensor = need(state, path, name);
      if (!fits(tensor, p)) {
        throw InputError(path, fmt::format("{}: {}, expected {}", escape(name),
                                           shape_text(tensor.shape), shape_text(shape_of(p))));
      }
      state.read(tensor, 0, std::as_writable_bytes(own.numbers));
    }
    if (p.trained)
      trainer.state().updates[static_cast<std::size_t>(i)] = read_updates(state, path, p);
  }
  const std::string* text = state_fact(state, kStep);
  const auto step = text == nullptr ? std::nullopt : parse_number<std::int64_t>(*text);
  if (!step || *step < 0)
    throw InputError(path, fmt::format("masque.{}: expected a whole number", kStep));
  trainer.set_done(*step);
}

TakenMoments read_moments(const store::Checkpoint& state, const std::string& path,
                          const std::function<bool(const std::string& name)>& takes,
                          Trainer& trainer, Parameters<float>& parameters) {
  TakenMoments taken;
  for (Index i = 0; i < parameters.count(); ++i) {
    const Parameter& p = parameters[i];
    if (!p.trained) continue;
    const std::vector<StatePart> moments = moments_of(trainer, p);
    const auto there = [&](const StatePart& own) {
      const store::TensorInfo* tensor = state.find(model::state_tensor_name(own.what, p.name));
      return tensor != nullptr && fits(*tensor, p);
    };
    if (!takes(p.name) || !std::ranges::all_of(moments, there)) {
      taken.missing.push_back(p.name);
      continue;
    }
    for (const StatePart& own : moments) {
      const std::string name = model::state_tensor_name(own.what, p.name);
      state.read(state.get(name), 0, std::as_writable_bytes(own.numbers));
      const float least =
          own.what == model::kStateSecond ? 0 : std::numeric_limits<float>::lowest();
      const auto bad = std::ranges::find_if(
          own.numbers, [&](float x) { return !std::isfinite(x) || x < least; });
      if (bad != own.numbers.end())
        throw InputError(path, fmt::format("{}: {}, expected moments", escape(name), *bad));
    }
    const std::int64_t updates = read_updates(state, path, p);
    trainer.state().updates[static_cast<std::size_t>(i)] = updates;
    taken.updates = std::max(taken.updates, updates);
    ++taken.parameters;
  }
  if (taken.parameters == 0) throw InputError(path, "no moments of this model's parameters");
  return taken;
}

const std::string* state_fact(const store::Checkpoint& state, std::string_view name) {
  const store::Metadata& metadata = state.files().front().content.metadata;
  const auto found = std::ranges::find(metadata, fmt::format("masque.{}", name),
                                       [](const auto& m) { return m.first; });
  return found == metadata.end() ? nullptr : &found->second;
}

}  // namespace masque::train
