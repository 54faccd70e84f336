#include "length/cell_state.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::length {

namespace {

constexpr const char* kStep = "masque.step";

/// What a state consists of, by name.
std::vector<std::pair<const char*, std::span<float>>> parts(train::Trainer& trainer,
                                                            train::Parameters<float>& parameters) {
  return {{"first", trainer.state().first.span()},
          {"second", trainer.state().second.span()},
          {"values", parameters.values()}};
}

}  // namespace

void save_cell_state(const std::string& path, train::Trainer& trainer,
                     train::Parameters<float>& parameters) {
  OutputWeights state;
  state.metadata.emplace_back(kStep, fmt::format("{}", trainer.done()));
  for (const auto& [name, values] : parts(trainer, parameters)) {
    OutputTensor& tensor = state.tensors.emplace_back();
    tensor.info.name = name;
    tensor.info.dtype = DType::kF32;
    tensor.info.shape = {values.size()};
    Computed source;
    source.fill = [bytes = std::as_bytes(values)](std::uint64_t offset, MutableBytes out) {
      std::memcpy(out.data(), bytes.data() + offset, out.size());
    };
    tensor.source = source;
  }
  write_checkpoint_file(path, state, {});
}

void load_cell_state(const std::string& path, train::Trainer& trainer,
                     train::Parameters<float>& parameters) {
  const Checkpoint state = open_checkpoint(path);
  for (const auto& [name, values] : parts(trainer, parameters)) {
    const TensorInfo& tensor = state.get(name);
    if (tensor.dtype != DType::kF32 || tensor.shape != Shape{values.size()}) {
      throw InputError(path, fmt::format("{}: {} numbers, expected {}", name,
                                         shape_text(tensor.shape), values.size()));
    }
    state.read(tensor, 0, std::as_writable_bytes(values));
  }
  const Metadata& metadata = state.files().front().content.metadata;
  const auto found = std::ranges::find(metadata, kStep, [](const auto& m) { return m.first; });
  std::int64_t step = -1;
  if (found != metadata.end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), step);
  }
  if (step < 0) throw InputError(path, fmt::format("{}: expected a whole number", kStep));
  trainer.set_done(step);
}

}  // namespace masque::length
