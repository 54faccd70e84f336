#include "store/quantized/decoded_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "store/config.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/markers.hpp"
#include "store/quantized/quantized_weights.hpp"

namespace masque::store {

namespace {

constexpr auto kSchemes = std::to_array<QuantizationScheme>({
    {"awq", decode_awq},
    {"bitsandbytes", decode_bitsandbytes},
    {"compressed-tensors", decode_compressed},
    {"fbgemm_fp8", decode_fbgemm_fp8},
    {"fp8", decode_fp8},
    {"gptq", decode_gptq},
    {"mxfp4", decode_mxfp4},
});

const QuantizationScheme& scheme_of(JsonSettings& settings) {
  const char* key = "quant_method";
  std::string method = settings.string(key).value_or("");
  // bitsandbytes wrote none at first.
  if (method.empty() &&
      (settings.flag("load_in_8bit", false) || settings.flag("load_in_4bit", false)))
    method = "bitsandbytes";
  const auto found = std::ranges::find(kSchemes, method, &QuantizationScheme::method);
  if (found == kSchemes.end())
    settings.refuse(key, "one of " + comma_list(kSchemes, &QuantizationScheme::method));
  return *found;
}

}  // namespace

Checkpoint decode_weights(Checkpoint checkpoint, const ModelConfig& config) {
  const std::string text = config.spelling(kQuantizationKey);
  if (text.empty()) return checkpoint;
  const std::string& path = config.path();
  const std::string where = std::string(kQuantizationKey) + ".";
  JsonSettings settings(parse_json_file(text, path), path, where);
  if (settings.empty()) return checkpoint;
  const QuantizationScheme& scheme = scheme_of(settings);
  QuantizedWeights weights(checkpoint);
  const std::string more = scheme.decode(settings, weights);
  for (const std::string& name : settings.unknown()) {
    if (settings.find(std::string_view(name).substr(where.size())) == nullptr) continue;  // null
    throw InputError(path, fmt::format("{}: expected only keys of {} whose meaning is known",
                                       escape(name), scheme.method));
  }
  if (weights.count() == 0) {
    throw InputError(path,
                     fmt::format("{} of {}, but no weight is quantised, expected at least one",
                                 kQuantizationKey, scheme.method));
  }
  checkpoint.put_decoded(
      weights.finish(),
      fmt::format("{} of {}: {} quantised weights are decoded to F32{}{}", kQuantizationKey,
                  scheme.method, weights.count(), more.empty() ? "" : "; ", more));
  return checkpoint;
}

Checkpoint open_decoded(const std::string& path) {
  Checkpoint checkpoint = open_checkpoint(path);
  if (checkpoint.bundle() || has_gguf_names(checkpoint)) return checkpoint;
  const auto config = own_config(checkpoint);
  return config ? decode_weights(std::move(checkpoint), *config) : std::move(checkpoint);
}

}  // namespace masque::store
