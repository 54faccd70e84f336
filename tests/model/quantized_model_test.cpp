// Models with quantised weights: decoded to the numbers of their scheme, and what is refused.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <tuple>

#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "model/model.hpp"
#include "store/config.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "support/golden_logits.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using test::check_golden_logits;
using test::contains;
using test::message_of;
using test::read_all;
using test::SmallTensor;
using test::TempFolder;

const std::string kQuantizedFolder = MASQUE_TEST_DATA "/quantized_model";
const std::string kQueryOfLayer = "model.layers.0.self_attn.q_proj.";

/// Every weight of the folder, read.
void read_quantized_weights(const std::string& folder) {
  const store::Checkpoint checkpoint = store::open_decoded(folder);
  for (const store::TensorInfo& info : checkpoint.tensors()) {
    std::vector<std::byte> bytes(info.bytes());
    checkpoint.read(info, 0, bytes);
  }
}

TEST_CASE("quantised models have the numbers of their schemes and transformers' logits") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kQuantizedFolder)) {
    if (!entry.is_directory()) continue;
    const std::string path = entry.path().string();
    CAPTURE(path);
    ++models;
    const store::Checkpoint golden = store::open_checkpoint(path + ".golden.safetensors");
    const store::Checkpoint decoded = store::open_decoded(path);
    CHECK(decoded.is_decoded());
    std::size_t compared = 0;
    for (const store::TensorInfo& info : golden.tensors()) {
      if (!info.name.starts_with("model.")) continue;
      CAPTURE(info.name);
      ++compared;
      CHECK(decoded.get(info.name).shape == info.shape);
      CHECK(decoded.get(info.name).dtype == DType::kF32);
      CHECK(read_all<std::uint32_t>(decoded, info.name) ==
            read_all<std::uint32_t>(golden, info.name));
    }
    CHECK(compared == 2);
    check_golden_logits(path, golden);
  }
  CHECK(models == 24);
}

TEST_CASE("a decoded weight is read from any place on") {
  for (const std::string name :
       {"fp8-ragged", "bnb-nf4-nested", "gptq-3-order", "awq", "ct-pack-4-order", "mxfp4"}) {
    CAPTURE(name);
    const store::Checkpoint decoded = store::open_decoded(kQuantizedFolder + "/" + name);
    const std::string weight = name == "mxfp4" ? "model.layers.0.mlp.experts.down_proj"
                                               : "model.layers.0.mlp.down_proj.weight";
    const auto all = read_all<std::uint32_t>(decoded, weight);
    for (const std::size_t first : {std::size_t{1}, std::size_t{777}, all.size() - 3}) {
      std::vector<std::uint32_t> part(3);
      decoded.read(decoded.get(weight), first * 4, std::as_writable_bytes(std::span(part)));
      CHECK(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first)));
    }
  }
}

/// A model whose parts are changed before it is opened.
struct ChangedModel {
  explicit ChangedModel(const std::string& name) {
    const std::string path = kQuantizedFolder + "/" + name;
    config = store::ModelConfig::find(path)->text();
    const store::Checkpoint stored = store::open_checkpoint(path);
    for (const store::TensorInfo& info : stored.tensors()) {
      SmallTensor tensor{info.name, std::string(dtype_name(info.dtype)), info.shape,
                         std::string(info.bytes(), '\0')};
      stored.read(info, 0, std::as_writable_bytes(std::span(tensor.bytes)));
      tensors.push_back(std::move(tensor));
    }
  }

  SmallTensor& get(const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &SmallTensor::name);
    REQUIRE(found != tensors.end());
    return *found;
  }
  void erase(const std::string& name) {
    REQUIRE(std::erase_if(tensors, [&](const SmallTensor& t) { return t.name == name; }) == 1);
  }
  /// Sets a member of quantization_config; adds one that is not there.
  void set(const std::string& key, const std::string& value) {
    config = set_json_member(config, {store::kQuantizationKey, key}, value);
  }
  template <class Number>
  void put(const std::string& name, std::size_t at, Number number) {
    std::memcpy(get(name).bytes.data() + at * sizeof(Number), &number, sizeof(Number));
  }
  std::string message() const {
    const TempFolder folder;
    test::write_file(folder / "config.json", config);
    test::write_file(folder / "model.safetensors", test::make_safetensors(tensors));
    return message_of([&] { read_quantized_weights(folder.path()); });
  }

  std::string config;
  std::vector<SmallTensor> tensors;
};

struct BadModel {
  const char* name;
  std::function<void(ChangedModel&)> change;
  const char* message;
};

TEST_CASE("quantised models that do not mean anything are refused by name") {
  const std::string w = kQueryOfLayer + "weight";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const BadModel rows[] = {
      // Settings.
      {"fp8-blocks", [](auto& m) { m.set("quant_method", R"("aqlm")"); },
       "quantization_config.quant_method is 'aqlm', expected one of awq, bitsandbytes"},
      {"fp8-blocks", [](auto& m) { m.set("rotation", "true"); },
       "quantization_config.rotation: expected only keys of fp8 whose meaning is known"},
      {"fp8-blocks", [](auto& m) { m.set("weight_block_size", "[0, 16]"); },
       "weight_block_size is a list, expected a list of two whole numbers from 1"},
      {"fp8-blocks", [](auto& m) { m.set("expert_dtype", R"("fp4")"); }, "expert_dtype is 'fp4'"},
      {"bnb-nf4", [](auto& m) { m.set("bnb_4bit_quant_type", R"("fp4")"); },
       "bnb_4bit_quant_type is 'fp4', expected 'nf4', the type of"},
      {"bnb-int8", [](auto& m) { m.set("llm_int8_has_fp16_weight", "true"); },
       "llm_int8_has_fp16_weight is true, expected false"},
      {"gptq-4", [](auto& m) { m.set("bits", "5"); }, "bits is 5, expected 2, 3, 4 or 8"},
      {"gptq-4", [](auto& m) { m.set("bits", "8"); },
       "down_proj.scales: shape [4,32], expected [2,32]"},
      {"gptq-4", [](auto& m) { m.set("group_size", "32"); },
       "down_proj.scales: shape [4,32], expected [2,32]"},
      {"gptq-4", [](auto& m) { m.set("dynamic", R"({"x": {"bits": 8}})"); },
       "quantization_config.dynamic: expected only keys of gptq"},
      {"awq", [](auto& m) { m.set("desc_act", "true"); }, "desc_act is true, expected false"},
      {"gptq-4", [](auto& m) { m.set("checkpoint_format", R"("marlin")"); },
       "checkpoint_format is 'marlin', expected 'gptq' or 'gptq_v2'"},
      {"awq", [](auto& m) { m.set("version", R"("gemv")"); }, "version is 'gemv', expected 'gemm'"},
      {"awq", [](auto& m) { m.set("zero_point", "false"); }, "zero_point is false, expected true"},
      {"ct-float", [](auto& m) { m.set("format", R"("nvfp4-pack-quantized")"); },
       "format is 'nvfp4-pack-quantized', expected 'float-quantized'"},
      {"ct-float", [](auto& m) { m.set("kv_cache_scheme", R"({"num_bits": 8})"); },
       "kv_cache_scheme is an object, expected no value"},
      {"ct-float", [](auto& m) { m.set("sparsity_config", R"({"format": "sparse-24-bitmask"})"); },
       "sparsity_config is an object, expected an empty object"},
      {"ct-pack-4", [](auto& m) { m.set("config_groups", "{}"); },
       "config_groups is an object, expected an object with groups"},
      {"fp8-blocks", [](auto& m) { m.set("quant_method", R"("awq")"); },
       "quantization_config.activation_scheme: expected only keys of awq"},
      {"awq",
       [](auto& m) {
         m.config = set_json_member(m.config, {store::kQuantizationKey},
                                    R"({"quant_method": "bitsandbytes"})");
       },
       "quantization_config of bitsandbytes, but no weight is quantised, expected at least one"},
      // Parts that are missing.
      {"fp8-blocks", [&](auto& m) { m.erase(w + "_scale_inv"); },
       "is quantised, and there is no tensor 'model.layers.0.self_attn.q_proj.weight_scale_inv'"},
      {"fp8-blocks", [&](auto& m) { m.erase(w); },
       "q_proj.weight_scale_inv' (F32) is a part of a quantised weight"},
      {"mxfp4", [](auto& m) { m.erase("model.layers.0.mlp.experts.down_proj_scales"); },
       "there is no tensor 'model.layers.0.mlp.experts.down_proj_scales'"},
      {"bnb-nf4", [&](auto& m) { m.erase(w + ".quant_state.bitsandbytes__nf4"); },
       "is a part of a quantised weight, expected the other parts next to it"},
      {"bnb-nf4-nested", [&](auto& m) { m.erase(w + ".nested_absmax"); },
       "there is no tensor 'model.layers.0.self_attn.q_proj.weight.nested_absmax'"},
      {"bnb-int8", [](auto& m) { m.erase(kQueryOfLayer + "SCB"); },
       "q_proj.weight' (I8) is a part of a quantised weight"},
      {"gptq-3-order", [](auto& m) { m.erase(kQueryOfLayer + "g_idx"); },
       "there is no tensor 'model.layers.0.self_attn.q_proj.g_idx'"},
      {"awq", [](auto& m) { m.erase(kQueryOfLayer + "qzeros"); },
       "there is no tensor 'model.layers.0.self_attn.q_proj.qzeros'"},
      {"ct-int8", [&](auto& m) { m.erase(w + "_zero_point"); }, "q_proj.weight_zero_point'"},
      {"ct-pack-4", [&](auto& m) { m.erase(w + "_shape"); }, "q_proj.weight_shape'"},
      // Shapes and types.
      {"fp8-blocks",
       [&](auto& m) {
         m.get(w + "_scale_inv").shape = {1, 4};
       },
       "q_proj.weight_scale_inv: shape [1,4], expected [2,2]"},
      {"fp8-blocks",
       [&](auto& m) {
         m.get(w).shape = {2, 16, 32};
       },
       "q_proj.weight: shape [2,16,32], expected a matrix"},
      {"fbgemm", [&](auto& m) { m.get(w + "_scale").shape = {32}; }, "shape [32], expected [32,1]"},
      {"mxfp4",
       [](auto& m) {
         m.get("model.layers.0.mlp.experts.down_proj_blocks").shape = {3, 32, 4, 8};
       },
       "shape [3,32,4,8], expected [experts,outputs,blocks,16]"},
      {"bnb-nf4",
       [&](auto& m) {
         m.get(w).bytes.resize(8), m.get(w).shape = {8, 1};
       },
       "q_proj.weight: 8 bytes, expected 512 for shape [32,32]"},
      {"bnb-nf4", [&](auto& m) { m.get(w + ".quant_map").dtype = "I32"; },
       "quant_map: type I32, expected F32"},
      {"bnb-int8", [&](auto& m) { m.put(w + "_format", 0, '\1'); },
       "weight_format: another order than rows, expected 0"},
      {"gptq-4", [](auto& m) { m.get(kQueryOfLayer + "qweight").dtype = "F32"; },
       "q_proj.qweight: type F32, expected I32"},
      {"ct-pack-4", [&](auto& m) { m.put(w + "_shape", 1, std::int64_t{41}); },
       "[32,41], expected a shape of 4 packed numbers in [32,4]"},
      // Numbers.
      {"fp8-blocks", [&](auto& m) { m.put(w + "_scale_inv", 1, nan); },
       "q_proj.weight_scale_inv: scale 1 is nan, expected a finite number that is not 0"},
      {"fp8-blocks", [&](auto& m) { m.put(w + "_scale_inv", 3, 0.0F); },
       "weight_scale_inv: scale 3 is 0, expected a finite number that is not 0"},
      {"fp8-bytes", [&](auto& m) { m.put(w + "_scale_inv", 2, '\xff'); }, "scale 2 is nan"},
      {"mxfp4", [](auto& m) { m.put("model.layers.0.mlp.experts.down_proj_scales", 7, '\xff'); },
       "down_proj_scales: scale 7 is nan"},
      {"bnb-nf4", [&](auto& m) { m.put(w + ".absmax", 5, -nan); }, "absmax: scale 5 is"},
      {"gptq-4", [](auto& m) { m.put(kQueryOfLayer + "scales", 40, std::uint16_t{0}); },
       "q_proj.scales: scale 40 is 0"},
      {"gptq-4", [](auto& m) { m.put(kQueryOfLayer + "g_idx", 9, std::int32_t{2}); },
       "q_proj.g_idx: input 9 is in group 2, expected 0 to 1"},
      {"gptq-4", [](auto& m) { m.put(kQueryOfLayer + "g_idx", 9, std::int32_t{-1}); },
       "q_proj.g_idx: input 9 is in group -1, expected 0 to 1"},
      {"gptq-4", [](auto& m) { m.put(kQueryOfLayer + "qzeros", 0, ~std::uint32_t{0}); },
       "zero point 0 of output 0 is 15, expected less"},
      {"ct-pack-4-order", [&](auto& m) { m.put(w + "_g_idx", 3, std::int32_t{2}); },
       "weight_g_idx: column 3 is in group 2, expected 0 to 1"},
      {"ct-float", [&](auto& m) { m.put(w + "_scale", 2, std::uint16_t{0x7f80}); },
       "weight_scale: scale 2 is inf"},
  };
  for (const BadModel& row : rows) {
    CAPTURE(std::string(row.name));
    CAPTURE(std::string(row.message));
    ChangedModel model(row.name);
    CHECK(model.message() == "(nothing thrown)");
    row.change(model);
    const std::string message = model.message();
    CAPTURE(message);
    CHECK(contains(message, row.message));
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("keys of a scheme that are null, and those of its search, change nothing") {
  for (const auto& [name, key, value] :
       std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"gptq-4", "dynamic", "null"},
           {"gptq-4", "meta", R"({"quantizer": ["x"]})"},
           {"awq", "checkpoint_format", R"("gemm")"},
           {"ct-pack-4", "kv_cache_scheme", "null"},
           {"ct-float", "sparsity_config", "{}"},
           {"bnb-int8", "llm_int8_threshold", "0.0"},
           {"fp8-blocks", "modules_to_not_convert", R"(["lm_head"])"}}) {
    ChangedModel model(name);
    model.set(key, value);
    CHECK(model.message() == "(nothing thrown)");
  }
}

TEST_CASE("a state of bitsandbytes that is not understood is refused") {
  const std::string state = kQueryOfLayer + "weight.quant_state.bitsandbytes__nf4";
  const auto message = [&](const std::string& key, const std::string& value) {
    ChangedModel model("bnb-nf4");
    SmallTensor& tensor = model.get(state);
    tensor.bytes = set_json_member(tensor.bytes, {key}, value);
    tensor.shape = {tensor.bytes.size()};
    return model.message();
  };
  CHECK(
      contains(message("blocksize", "48"), "blocksize is 48, expected a power of two up to 4096"));
  CHECK(contains(message("quant_type", R"("fp4")"), "quant_type is 'fp4', expected 'nf4'"));
  CHECK(contains(message("shape", "[32, 64]"), "512 bytes, expected 1024 for shape [32,64]"));
  CHECK(contains(message("shape", "[4611686018427387904, 8]"), "shape is a list, expected fewer"));
  CHECK(contains(message("offset", "2"), "'offset', expected none but what is known"));
}

}  // namespace
}  // namespace masque::model
