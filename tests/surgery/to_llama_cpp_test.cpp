// Models of transformers become files of llama.cpp, and the same models again.
#include "surgery/convert/to_llama_cpp.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "store/checkpoint.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/tensor_stats.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"
#include "tensor/convert.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kModels = MASQUE_TEST_DATA "/model/";

std::vector<float> numbers_of(const store::Checkpoint& checkpoint, const store::TensorInfo& info) {
  std::vector<std::byte> bytes(info.bytes());
  checkpoint.read(info, 0, bytes);
  std::vector<float> numbers(info.elements());
  to_float(info.dtype, bytes, numbers);
  return numbers;
}

ConvertResult to_gguf(const std::string& in, const std::string& out, const std::string& blocks = "",
                      std::optional<DType> dtype = std::nullopt) {
  ConvertRequest request;
  request.names = NameStyle::kUsual;
  request.blocks = blocks;
  request.dtype = dtype;
  return convert_checkpoint(in, out, request);
}

ConvertResult to_hf(const std::string& in, const std::string& out) {
  ConvertRequest request;
  request.names = NameStyle::kHf;
  return convert_checkpoint(in, out, request);
}

/// The largest difference between two checkpoints that have the same tensors.
double difference(const std::string& a, const std::string& b) {
  const store::Checkpoint left = store::open_checkpoint(a), right = store::open_checkpoint(b);
  double largest = 0;
  for (const store::TensorInfo& info : right.tensors()) {
    CAPTURE(info.name);
    const auto found = numbers_of(right, info);
    const auto expected = numbers_of(left, left.get(info.name));
    CHECK(left.get(info.name).shape == info.shape);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      largest = std::max(largest, static_cast<double>(std::abs(found[i] - expected[i])));
  }
  return largest;
}

TEST_CASE("a model of transformers becomes llama.cpp's, and the same one again") {
  for (const std::string name : {"llama", "llama_scaled", "mistral_open", "gemma", "phi3",
                                 "phi3_window", "gpt2", "qwen2_moe"}) {
    CAPTURE(name);
    const TempFolder folder;
    const std::string in = kModels + name;
    const ConvertResult result = to_gguf(in, folder / "model.gguf");
    CHECK(result.renamed == result.tensors);
    CHECK(store::has_gguf_names(store::open_checkpoint(folder / "model.gguf")));
    to_hf(folder / "model.gguf", folder / "again");
    // Gemma's norms are kept with 1 added, in float.
    CHECK(difference(in, folder / "again") <= (name.starts_with("gemma") ? 1e-7 : 0.0));
  }
}

TEST_CASE("what llama.cpp's metadata cannot say is named, and nothing is written") {
  for (const auto& [name, why] : {std::pair("mistral", "sliding_window"),
                                  {"llama_bias", "mlp.gate_proj.bias"},
                                  {"llama_linear", "hidden_act"},
                                  {"llama_yarn", "rope_parameters"},
                                  {"qwen2", "sliding_window"},
                                  {"gpt2_layer_scale", "scale_attn_by_inverse_layer_idx"},
                                  {"gpt2_base", "activation_function"},
                                  {"gpt2_unscaled", "scale_attn_weights"},
                                  {"gemma2", "self_attn.k_proj.bias"},
                                  {"mixtral", "sliding_window"},
                                  {"qwen3_moe", "layers.0.mlp.gate_proj.weight"},
                                  {"olmoe_normalized", "norm_topk_prob"},
                                  {"gpt_oss", "swiglu_limit"},
                                  {"gemma3_hub", "sliding_window"},
                                  {"starcoder2", "sliding_window"}}) {
    CAPTURE(name);
    const TempFolder folder;
    const std::string message =
        message_of([&, in = kModels + name] { to_gguf(in, folder / "model.gguf"); });
    CHECK(contains(message, "names keep writes a container"));
    CHECK(contains(message, why));
    CHECK(folder.names().empty());
  }
}

TEST_CASE("every architecture that is read is written") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MASQUE_TEST_DATA "/gguf_model")) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string in = entry.path().string();
    CAPTURE(in);
    const TempFolder folder;
    to_hf(in, folder / "folder");
    if (entry.path().filename().string().starts_with("t5")) {
      // Its tokenizer is not written.
      ConvertRequest request;
      request.names = NameStyle::kLlamaCpp;
      CHECK(contains(
          message_of([&] { convert_checkpoint(folder / "folder", folder / "x.gguf", request); }),
          "model_type is \"t5\", expected a model that llama.cpp's files are written of"));
      continue;
    }
    ++models;
    to_gguf(folder / "folder", folder / "again.gguf");
    to_hf(folder / "again.gguf", folder / "folder2");
    CHECK(difference(folder / "folder", folder / "folder2") <= 1e-7);
    const store::Checkpoint first = store::open_checkpoint(in);
    const store::Checkpoint again = store::open_checkpoint(folder / "again.gguf");
    for (const char* key : {"general.architecture", "tokenizer.ggml.bos_token_id"}) {
      const store::TypedValue* value = store::find_gguf_value(first, key);
      if (value != nullptr) CHECK(store::find_gguf_value(again, key)->bytes == value->bytes);
    }
  }
  CHECK(models == 25);
}

/// Whether the files have the same quantised tensors, at least one, bit for bit.
bool same_blocks(const std::string& left, const std::string& right) {
  const store::Checkpoint a = store::open_checkpoint(left), b = store::open_checkpoint(right);
  if (a.opaque().empty() || a.opaque().size() != b.opaque().size()) return false;
  return std::ranges::all_of(a.opaque(), [&](const store::OpaqueTensor& tensor) {
    const store::OpaqueTensor* other = b.find_opaque(tensor.name);
    return other != nullptr && store::opaque_hash(a, tensor, store::HashKind::kSha256) ==
                                   store::opaque_hash(b, *other, store::HashKind::kSha256);
  });
}

TEST_CASE("quantised weights of transformers become blocks of what they mean") {
  for (const std::string name :
       {"awq", "bnb-int8", "bnb-nf4", "ct-pack-4", "fp8-blocks", "gptq-4", "mxfp4"}) {
    CAPTURE(name);
    const TempFolder folder;
    const std::string in = MASQUE_TEST_DATA "/quantized_model/" + name;
    to_gguf(in, folder / "direct.gguf", "Q8_0");
    ConvertRequest decode;
    decode.dtype = DType::kF32;
    convert_checkpoint(in, folder / "decoded", decode);
    to_gguf(folder / "decoded", folder / "of_decoded.gguf", "Q8_0");
    CHECK(same_blocks(folder / "direct.gguf", folder / "of_decoded.gguf"));
  }
}

/// Which types of blocks the tensors of a file have, and how many each.
std::map<std::string, std::size_t> types_of(const std::string& path) {
  const store::Checkpoint checkpoint = store::open_checkpoint(path);
  std::map<std::string, std::size_t> types;
  for (const store::OpaqueTensor& tensor : checkpoint.opaque()) ++types[tensor.type];
  for (const store::TensorInfo& tensor : checkpoint.tensors())
    ++types[std::string(dtype_name(tensor.dtype))];
  return types;
}

using Types = std::map<std::string, std::size_t>;

TEST_CASE("matrices are quantised, vectors are not, and rows that fill no block are told") {
  const TempFolder folder;
  // Rows of 24 and 40 elements.
  const ConvertResult odd = to_gguf(kModels + "llama", folder / "odd.gguf", "Q8_0");
  CHECK(types_of(folder / "odd.gguf") == Types{{"F16", 16}, {"F32", 5}});
  REQUIRE(odd.notes.size() == 2);
  CHECK(contains(odd.notes[1], "no multiple of 32 elements, which Q8_0 needs: 16 in F16"));
  // Rows of 32.
  const std::string in = MASQUE_TEST_DATA "/gguf_model/llama.gguf";
  to_hf(in, folder / "folder");
  for (const std::string kind : {"Q8_0", "Q4_0"}) {
    CAPTURE(kind);
    to_gguf(folder / "folder", folder / "of_hf.gguf", kind);
    CHECK(types_of(folder / "of_hf.gguf") == Types{{kind, 16}, {"F32", 5}});
    ConvertRequest request;
    request.blocks = kind;
    convert_checkpoint(in, folder / "of_gguf.gguf", request);
    // As the package quantises.
    const std::string golden = MASQUE_TEST_DATA "/gguf_model/llama-" +
                               std::string(kind == "Q8_0" ? "q8_0" : "q4_0") + ".gguf";
    CHECK(types_of(golden) == types_of(folder / "of_gguf.gguf"));
    CHECK(same_blocks(folder / "of_hf.gguf", folder / "of_gguf.gguf"));
  }
  ConvertRequest again;
  again.blocks = "Q8_0";
  CHECK(contains(
      message_of([&] { convert_checkpoint(folder / "of_gguf.gguf", folder / "x.gguf", again); }),
      "already, expected a file that is not quantised"));
  const auto k = to_gguf(folder / "folder", folder / "k.gguf", "Q4_K");
  CHECK(types_of(folder / "k.gguf") == Types{{"Q8_0", 16}, {"F32", 5}});
  CHECK(contains(k.notes.back(), "no multiple of 256 elements, which Q4_K needs: 16 in Q8_0"));
  CHECK(contains(message_of<UsageError>([&] {
                   ConvertRequest request;
                   request.blocks = "Q8_0";
                   convert_checkpoint(kModels + "llama", folder / "x", request);
                 }),
                 "only a .gguf file with llama.cpp's names has such blocks"));
}

TEST_CASE("a model in BF16 keeps its matrices, and values that a type cannot hold are refused") {
  const TempFolder folder;
  ConvertRequest half;
  half.dtype = DType::kBF16;
  convert_checkpoint(kModels + "llama", folder / "half", half);
  to_gguf(folder / "half", folder / "half.gguf");
  CHECK(types_of(folder / "half.gguf") == Types{{"BF16", 16}, {"F32", 5}});
  to_hf(folder / "half.gguf", folder / "again");
  CHECK(difference(folder / "half", folder / "again") == 0);
}

TEST_CASE("a tokenizer of the folder is in the file") {
  const TempFolder folder;
  for (const char* name : {"config.json", "model.safetensors"})
    write_file(folder / name, read_file(kModels + "llama/" + name));
  const std::string classes = MASQUE_TEST_DATA "/text/classes/";
  write_file(folder / "tokenizer.model", read_file(classes + "llama.model"));
  write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  // The table has 45 rows.
  CHECK(contains(message_of([&] { to_gguf(folder.path(), folder / "x.gguf"); }),
                 "tokens, expected at most 45, the rows of the table"));
}

}  // namespace
}  // namespace masque::surgery
