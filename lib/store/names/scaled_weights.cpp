#include "store/names/scaled_weights.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/ascii.hpp"

namespace masque::store {

namespace {

constexpr std::string_view kWeight = ".weight";

// After the whole name: compressed-tensors and ModelOpt (_scale, _scale_2, _zero_point), DeepSeek
// (_scale_inv), bitsandbytes (.absmax, .quant_map), ONNX and others.
constexpr auto kAfterName = std::to_array<std::string_view>(
    {"_scale", "_scale_inv", "_scale_2", "_scales", "_zero_point", "_zero_points", "_absmax",
     ".absmax", ".quant_map", ".nested_absmax", ".scale", ".scales"});
// Instead of ".weight": bitsandbytes' LLM.int8 (SCB), MLX and GPTQ (scales), ComfyUI
// (scale_weight).
constexpr auto kInsteadOfWeight = std::to_array<std::string_view>(
    {".SCB", ".scale", ".scales", ".scale_weight", ".weight_scb", ".qzeros", ".zeros"});

}  // namespace

std::optional<std::string> scale_of(const Checkpoint& checkpoint, const TensorInfo& weight) {
  std::optional<std::string> found;
  const auto look = [&](std::string name) {
    if (found) return;
    if (checkpoint.find(name) != nullptr || checkpoint.find_opaque(name) != nullptr)
      found = std::move(name);
  };
  for (const std::string_view ending : kAfterName) look(weight.name + std::string(ending));
  if (!weight.name.ends_with(kWeight)) return found;
  const std::string stem = weight.name.substr(0, weight.name.size() - kWeight.size());
  for (const std::string_view ending : kInsteadOfWeight) look(stem + std::string(ending));
  return found;
}

void check_has_no_scale(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config,
                        const TensorInfo& weight) {
  if (const auto scale = scale_of(checkpoint, weight)) {
    throw InputError(
        checkpoint.path(),
        fmt::format("'{}' ({}) has the scale '{}', expected weights without scales: quantised "
                    "weights are not supported",
                    escape(weight.name), dtype_name(weight.dtype), escape(*scale)));
  }
  if (!config || dtype_bits(weight.dtype) != 8 || !is_float(weight.dtype)) return;
  const char* key = "quantization_config";
  if (!config->has(key)) return;
  throw InputError(config->path(),
                   fmt::format("{}: '{}' ({}) is quantised, expected weights without scales: "
                               "quantised weights are not supported",
                               key, escape(weight.name), dtype_name(weight.dtype)));
}

ScaleNames::ScaleNames(const Checkpoint& checkpoint) : path_(checkpoint.path()) {
  const auto add = [&](const std::string& name) {
    const std::size_t dot = name.rfind('.');
    const std::size_t begin = dot == std::string::npos ? 0 : dot + 1;
    std::string last = name.substr(begin);
    for (char& c : last) c = ascii_small(c);
    if (last.find("scale") == std::string::npos) return;
    std::string module = name.substr(0, begin);
    // "X.weight.scale" is one of X.weight.
    if (module.ends_with(".weight.")) module.resize(module.size() - kWeight.size());
    by_module_.emplace(std::move(module), name);
  };
  for (const TensorInfo& tensor : checkpoint.tensors()) add(tensor.name);
  for (const OpaqueTensor& tensor : checkpoint.opaque()) add(tensor.name);
}

void ScaleNames::check_none_beside(const TensorInfo& weight) const {
  const auto found = by_module_.find(weight.name.substr(0, weight.name.rfind('.') + 1));
  if (found == by_module_.end() || found->second == weight.name) return;
  throw InputError(
      path_, fmt::format("'{}' ({}) is next to '{}', expected weights without "
                         "scales: quantised weights are not supported",
                         escape(weight.name), dtype_name(weight.dtype), escape(found->second)));
}

}  // namespace masque::store
