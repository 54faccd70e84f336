#include "train/run/trainer_state.hpp"

#include <algorithm>
#include <array>
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
#include "base/string/parse_number.hpp"
#include "model/checkpoint/training_state.hpp"
#include "train/run/folder_parts.hpp"

namespace masque::train {

namespace {

constexpr const char* kStep = "step";
// More than any run has, and a whole number in every sum.
constexpr std::int64_t kMostUpdates = std::int64_t{1} << 60;

constexpr std::array<std::string_view, 2> kMoments{model::kStateFirst, model::kStateSecond};

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

/// Refuses moments of other values than `p` has in `parameters`, as of rows in another order.
/// Values may have been rounded since (ckpt convert).
void check_values(const store::Checkpoint& state, const std::string& path, const Parameter& p,
                  Parameters<float>& parameters) {
  const store::TensorInfo* tensor =
      state.find(model::state_tensor_name(model::kStateValue, p.name));
  if (tensor == nullptr || !fits(*tensor, p)) return;
  std::vector<float> before(static_cast<std::size_t>(p.size()));
  state.read(*tensor, 0, std::as_writable_bytes(std::span(before)));
  const std::span<const float> now = elements_of(parameters.values(), p.offset, p);
  if (model::are_values_of_state(before, now)) return;
  throw InputError(path, fmt::format("the moments belong to other values of '{}' than the model "
                                     "has: it was changed since; remove {}",
                                     escape(p.name), field("init_moments")));
}

}  // namespace

std::optional<ScratchFile> gather_moments(Trainer& trainer, const std::string& folder) {
  std::optional<ScratchFile> file;
  if (trainer.is_first()) file.emplace(folder);
  trainer.visit_moments([&](bool /*second*/, std::span<const float> numbers) {
    if (!file) return;
    const std::span<const std::byte> bytes = std::as_bytes(numbers);
    file->append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
  return file;
}

store::OutputWeights trainer_state(Trainer& trainer, Parameters<float>& parameters,
                                   const ScratchFile* moments) {
  MASQUE_CHECK(!trainer.shards() || moments != nullptr);
  OptimizerState& own = trainer.state();
  const auto moment = [&](std::size_t which, const Parameter& p) {
    const std::string name = model::state_tensor_name(kMoments[which], p.name);
    if (moments == nullptr) {
      const std::span<float> all = (which == 1 ? own.second : own.first).span();
      return float_tensor(name, shape_of(p), elements_of(all, p.gradient_offset, p));
    }
    const std::uint64_t begin =
        moments->size() / 2 * which + static_cast<std::uint64_t>(p.gradient_offset) * sizeof(float);
    store::OutputTensor tensor = float_tensor(name, shape_of(p), {});
    tensor.source = store::Computed{[moments, begin](std::uint64_t offset, MutableBytes out) {
      moments->read(begin + offset, out);
    }};
    return tensor;
  };

  store::OutputWeights state;
  state.metadata.emplace_back(fmt::format("masque.{}", kStep), fmt::format("{}", trainer.done()));
  for (Index i = 0; i < parameters.count(); ++i) {
    const Parameter& p = parameters[i];
    state.tensors.push_back(float_tensor(model::state_tensor_name(model::kStateValue, p.name),
                                         shape_of(p),
                                         elements_of(parameters.values(), p.offset, p)));
    if (!p.trained) continue;
    for (std::size_t which = 0; which < kMoments.size(); ++which)
      state.tensors.push_back(moment(which, p));
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
    const auto read = [&](std::string_view what, std::span<float> numbers) {
      const std::string name = model::state_tensor_name(what, p.name);
      const store::TensorInfo& tensor = need(state, path, name);
      if (!fits(tensor, p)) {
        throw InputError(path, fmt::format("{}: {}, expected {}", escape(name),
                                           shape_text(tensor.shape), shape_text(shape_of(p))));
      }
      state.read(tensor, 0, std::as_writable_bytes(numbers));
    };
    read(model::kStateValue, elements_of(parameters.values(), p.offset, p));
    if (!p.trained) continue;
    std::vector<float> numbers(static_cast<std::size_t>(p.size()));
    for (std::size_t which = 0; which < kMoments.size(); ++which) {
      read(kMoments[which], numbers);
      trainer.set_moments(i, which == 1, numbers);
    }
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
    const auto there = [&](std::string_view what) {
      const store::TensorInfo* tensor = state.find(model::state_tensor_name(what, p.name));
      return tensor != nullptr && fits(*tensor, p);
    };
    if (!takes(p.name) || !std::ranges::all_of(kMoments, there)) {
      taken.missing.push_back(p.name);
      continue;
    }
    check_values(state, path, p, parameters);
    std::vector<float> numbers(static_cast<std::size_t>(p.size()));
    for (std::size_t which = 0; which < kMoments.size(); ++which) {
      const std::string name = model::state_tensor_name(kMoments[which], p.name);
      state.read(state.get(name), 0, std::as_writable_bytes(std::span(numbers)));
      const float least = which == 1 ? 0 : std::numeric_limits<float>::lowest();
      const auto bad =
          std::ranges::find_if(numbers, [&](float x) { return !std::isfinite(x) || x < least; });
      if (bad != numbers.end())
        throw InputError(path, fmt::format("{}: {}, expected moments", escape(name), *bad));
      trainer.set_moments(i, which == 1, numbers);
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
