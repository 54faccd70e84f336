#include "train/run/trainer_state.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse_number.hpp"
#include "train/run/folder_parts.hpp"

namespace masque::train {

namespace {

constexpr const char* kStep = "step";

/// What a state consists of, by name.
std::vector<std::pair<const char*, std::span<float>>> state_parts(Trainer& trainer,
                                                                  Parameters<float>& parameters) {
  return {{"first", trainer.state().first.span()},
          {"second", trainer.state().second.span()},
          {"values", parameters.values()}};
}

}  // namespace

store::OutputWeights trainer_state(Trainer& trainer, Parameters<float>& parameters) {
  store::OutputWeights state;
  state.metadata.emplace_back(fmt::format("masque.{}", kStep), fmt::format("{}", trainer.done()));
  for (const auto& [name, values] : state_parts(trainer, parameters))
    state.tensors.push_back(float_tensor(name, {values.size()}, values));
  return state;
}

void read_trainer_state(const store::Checkpoint& state, const std::string& path, Trainer& trainer,
                        Parameters<float>& parameters) {
  for (const auto& [name, values] : state_parts(trainer, parameters)) {
    const store::TensorInfo& tensor = state.get(name);
    if (tensor.dtype != DType::kF32 || tensor.shape != Shape{values.size()}) {
      throw InputError(path, fmt::format("{}: {} numbers, expected {}", name,
                                         shape_text(tensor.shape), values.size()));
    }
    state.read(tensor, 0, std::as_writable_bytes(values));
  }
  const std::string* text = state_fact(state, kStep);
  const auto step = text == nullptr ? std::nullopt : parse_number<std::int64_t>(*text);
  if (!step || *step < 0)
    throw InputError(path, fmt::format("masque.{}: expected a whole number", kStep));
  trainer.set_done(*step);
}

const std::string* state_fact(const store::Checkpoint& state, std::string_view name) {
  const store::Metadata& metadata = state.files().front().content.metadata;
  const auto found = std::ranges::find(metadata, fmt::format("masque.{}", name),
                                       [](const auto& m) { return m.first; });
  return found == metadata.end() ? nullptr : &found->second;
}

}  // namespace masque::train
