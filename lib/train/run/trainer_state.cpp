#include "train/run/trainer_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
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

// Sums of two of them are still whole numbers.
constexpr std::int64_t kMostUpdates = std::int64_t{1} << 60;

/// One of the numbers that a state has of a parameter.
struct StatePart {
  const char* what;
  std::span<float> numbers;
};

std::span<float> part(std::span<float> of, Index first, const Parameter& p) {
  return of.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(p.size()));
}

std::vector<StatePart> moments_of(Trainer& trainer, const Parameter& p) {
  if (!p.trained) return {};
  OptimizerState& state = trainer.state();
  return {{model::kStateFirst, part(state.first.span(), p.gradient_offset, p)},
          {model::kStateSecond, part(state.second.span(), p.gradient_offset, p)}};
}

std::vector<StatePart> parts_of(Trainer& trainer, Parameters<float>& parameters,
                                const Parameter& p) {
  std::vector<StatePart> parts = moments_of(trainer, p);
  parts.push_back({model::kStateValue, part(parameters.values(), p.offset, p)});
  return parts;
}

Shape shape_of(const Parameter& p) {
  return {static_cast<std::uint64_t>(p.rows), static_cast<std::uint64_t>(p.columns)};
}

bool fits(const store::TensorInfo& tensor, const Parameter& p) {
  return tensor.dtype == DType::kF32 && tensor.shape == shape_of(p);
}

/// A number of updates in a state's metadata; `otherwise`: if there is none.
std::int64_t updates_of(const store::Checkpoint& state, const std::string& path, const char* name,
                        std::optional<std::int64_t> otherwise) {
  const std::string* text = state_fact(state, name);
  if (text == nullptr && otherwise) return *otherwise;
  const auto number = text == nullptr ? std::nullopt : parse_number<std::int64_t>(*text);
  if (!number || *number < 0 || *number > kMostUpdates)
    throw InputError(path, fmt::format("masque.{}: expected a whole number", name));
  return *number;
}

}  // namespace

store::OutputWeights trainer_state(Trainer& trainer, Parameters<float>& parameters) {
  store::OutputWeights state;
  const auto add = [&](const char* name, std::int64_t number) {
    state.metadata.emplace_back(fmt::format("masque.{}", name), fmt::format("{}", number));
  };
  add(model::kStateStep, trainer.done());
  if (trainer.state().updates_before > 0)
    add(model::kStateUpdatesBefore, trainer.state().updates_before);
  for (Index i = 0; i < parameters.count(); ++i) {
    const Parameter& p = parameters[i];
    for (const StatePart& own : parts_of(trainer, parameters, p)) {
      state.tensors.push_back(
          float_tensor(model::state_tensor_name(own.what, p.name), shape_of(p), own.numbers));
    }
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
      const store::TensorInfo* tensor = state.find(name);
      if (tensor == nullptr)
        throw InputError(path,
                         fmt::format("no '{}', expected the state of this run", escape(name)));
      if (!fits(*tensor, p)) {
        throw InputError(path, fmt::format("{}: {}, expected {}", escape(name),
                                           shape_text(tensor->shape), shape_text(shape_of(p))));
      }
      state.read(*tensor, 0, std::as_writable_bytes(own.numbers));
    }
  }
  trainer.state().updates_before = updates_of(state, path, model::kStateUpdatesBefore, 0);
  trainer.set_done(updates_of(state, path, model::kStateStep, std::nullopt));
}

std::vector<std::string> read_moments(const store::Checkpoint& state, const std::string& path,
                                      Trainer& trainer, Parameters<float>& parameters) {
  std::vector<std::string> missing;
  bool any = false;
  for (Index i = 0; i < parameters.count(); ++i) {
    const Parameter& p = parameters[i];
    const std::vector<StatePart> moments = moments_of(trainer, p);
    const auto there = [&](const StatePart& own) {
      const store::TensorInfo* tensor = state.find(model::state_tensor_name(own.what, p.name));
      return tensor != nullptr && fits(*tensor, p);
    };
    if (!std::ranges::all_of(moments, there)) {
      missing.push_back(p.name);
      continue;
    }
    for (const StatePart& own : moments) {
      any = true;
      const std::string name = model::state_tensor_name(own.what, p.name);
      state.read(state.get(name), 0, std::as_writable_bytes(own.numbers));
      const float least =
          own.what == model::kStateSecond ? 0 : std::numeric_limits<float>::lowest();
      const auto bad = std::ranges::find_if(
          own.numbers, [&](float x) { return !std::isfinite(x) || x < least; });
      if (bad != own.numbers.end())
        throw InputError(path, fmt::format("{}: {}, expected moments", escape(name), *bad));
    }
  }
  if (!any) throw InputError(path, "no moments of this model's parameters, expected some");
  trainer.state().updates_before = updates_of(state, path, model::kStateStep, std::nullopt) +
                                   updates_of(state, path, model::kStateUpdatesBefore, 0);
  return missing;
}

const std::string* state_fact(const store::Checkpoint& state, std::string_view name) {
  const store::Metadata& metadata = state.files().front().content.metadata;
  const auto found = std::ranges::find(metadata, fmt::format("masque.{}", name),
                                       [](const auto& m) { return m.first; });
  return found == metadata.end() ? nullptr : &found->second;
}

}  // namespace masque::train
