// Checkpoints as models: every golden case loads, tensors land where they belong, and whatever is
// wrong with a checkpoint is said in one clear line.
#include "model/checkpoint/load.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/family.hpp"
#include "model/weights.hpp"
#include "store/checkpoint.hpp"
#include "support/changed_model.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using test::contains;
using test::message_of;
using test::SmallTensor;
using test::TempFolder;

std::string folder_of_case(const std::string& name) {
  return std::string(MASQUE_TEST_DATA) + "/model/" + name;
}

LoadOptions options_of(const std::string& name) {
  return {.family = name == "tta_over_bert" ? "tta" : ""};
}

/// A checkpoint of which a test changes parts.
struct Parts {
  std::string config;
  std::vector<SmallTensor> tensors;

  explicit Parts(const std::string& name) {
    const std::string folder = folder_of_case(name);
    config = test::read_file(folder + "/config.json");
    const store::Checkpoint checkpoint = store::open_checkpoint(folder);
    for (const store::TensorInfo& info : checkpoint.tensors()) {
      std::string bytes(info.bytes(), '\0');
      checkpoint.read(info, 0, std::as_writable_bytes(std::span(bytes)));
      tensors.push_back({info.name, std::string(dtype_name(info.dtype)), info.shape, bytes});
    }
  }
  SmallTensor& get(const std::string& name) {
    const auto found =
        std::ranges::find_if(tensors, [&](const SmallTensor& t) { return t.name == name; });
    REQUIRE(found != tensors.end());
    return *found;
  }
  void drop(const std::string& name) {
    std::erase_if(tensors, [&](const SmallTensor& t) { return t.name == name; });
  }
  void set(const std::string& name, const std::string& value) {
    config = set_json_member(config, {name}, value);
  }
  void write(const TempFolder& folder) const {
    test::write_file(folder / "config.json", config);
    test::write_file(folder / "model.safetensors", test::make_safetensors(tensors));
  }
  std::string message() const {
    const TempFolder folder;
    write(folder);
    return message_of([&] { load_model<float>(folder.path()); });
  }
  LoadedModel<double> load() const {
    const TempFolder folder;
    write(folder);
    return load_model<double>(folder.path());
  }
};

/// Elements of a tensor of a case, F32.
std::vector<float> values_of(const std::string& name, const std::string& tensor) {
  Parts parts(name);
  const std::string& bytes = parts.get(tensor).bytes;
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Whether view(i, j) is values[place(i, j)].
bool is_at(MatrixView<const float> view, const std::vector<float>& values,
           const std::function<Index(Index, Index)>& place) {
  for (Index i = 0; i < view.rows; ++i) {
    for (Index j = 0; j < view.columns; ++j) {
      if (view.at(i, j) != values.at(static_cast<std::size_t>(place(i, j)))) return false;
    }
  }
  return view.rows * view.columns > 0;
}

TEST_CASE("every golden case loads, and what it leaves is known") {
  const auto cases = test::model_cases();
  CHECK(cases.size() >= 40);
  for (const test::ModelCase& one : cases) {
    CAPTURE(one.name);
    const auto single = load_model<float>(one.folder, options_of(one.name));
    const auto both = load_model<double>(one.folder, options_of(one.name));
    CHECK(both.unused == single.unused);
    for (const std::string& name : single.unused) {
      CAPTURE(name);
      CHECK((contains(name, "pooler.") || contains(name, "cls.seq_relationship.")));
    }
    CHECK(static_cast<Index>(single.design.layers.size()) == single.design.num_hidden_layers);
    const bool logits = test::expected(one, "0.logits").has_value();
    CHECK((single.design.head.kind != HeadKind::kNone) == logits);
    const auto words = single.weights.word_table.span();
    const auto wide = both.weights.word_table.span();
    CHECK(std::equal(words.begin(), words.end(), wide.begin(), wide.end()));
  }
}

TEST_CASE("tensors of the model's type stay where they are in the file") {
  const auto model = load_model<float>(folder_of_case("bert"));
  const auto values = values_of("bert", "bert.encoder.layer.1.attention.self.key.weight");
  const LayerWeights<float>& layer = model.weights.layers.at(1);
  const auto plain = [](Index i, Index j) { return i * 24 + j; };
  CHECK(is_at(layer.key.weight.view, values, plain));
  // One mapping owns them all.
  CHECK(layer.key.weight.owner == model.weights.word_table.owner);
  CHECK(model.weights.decoder.weight.view.data == model.weights.word_table.view.data);
}

TEST_CASE("fused and transposed tensors are taken apart") {
  const auto gpt2 = load_model<float>(folder_of_case("gpt2"));
  const auto fused = values_of("gpt2", "transformer.h.1.attn.c_attn.weight");
  const auto fused_bias = values_of("gpt2", "transformer.h.1.attn.c_attn.bias");
  const LayerWeights<float>& g = gpt2.weights.layers.at(1);
  CHECK(is_at(g.key.weight.view, fused, [](Index i, Index j) { return j * 72 + 24 + i; }));
  CHECK(is_at(g.value.bias.view, fused_bias, [](Index, Index j) { return 48 + j; }));

  const auto neox = load_model<float>(folder_of_case("gpt_neox"));
  const auto triples = values_of("gpt_neox", "gpt_neox.layers.0.attention.query_key_value.weight");
  const auto triple_bias =
      values_of("gpt_neox", "gpt_neox.layers.0.attention.query_key_value.bias");
  const LayerWeights<float>& n = neox.weights.layers.at(0);
  const Index size = neox.design.head_size;
  const auto from = [&](Index part, Index i) { return (i / size * 3 + part) * size + i % size; };
  CHECK(is_at(n.query.weight.view, triples, [&](Index i, Index j) { return from(0, i) * 32 + j; }));
  CHECK(is_at(n.value.weight.view, triples, [&](Index i, Index j) { return from(2, i) * 32 + j; }));
  CHECK(is_at(n.key.bias.view, triple_bias, [&](Index, Index j) { return from(1, j); }));

  const auto xlnet = load_model<float>(folder_of_case("xlnet"));
  const auto query = values_of("xlnet", "transformer.layer.0.rel_attn.q");
  const auto output = values_of("xlnet", "transformer.layer.0.rel_attn.o");
  const LayerWeights<float>& x = xlnet.weights.layers.at(0);
  CHECK(is_at(x.query.weight.view, query, [](Index i, Index j) { return j * 24 + i; }));
  CHECK(is_at(x.output.weight.view, output, [](Index i, Index j) { return i * 24 + j; }));

  const auto modern = load_model<float>(folder_of_case("modernbert"));
  const auto halves = values_of("modernbert", "model.layers.2.mlp.Wi.weight");
  const LayerWeights<float>& m = modern.weights.layers.at(2);
  CHECK(is_at(m.gate.weight.view, halves, [](Index i, Index j) { return i * 16 + j; }));
  CHECK(is_at(m.up.weight.view, halves, [](Index i, Index j) { return (20 + i) * 16 + j; }));
  CHECK_FALSE(static_cast<bool>(modern.weights.layers.at(0).attention_norm.weight));
}

TEST_CASE("GAU's factors of queries and keys are two rows") {
  const auto model = load_model<float>(folder_of_case("gau_alpha_squared_relu"));
  const std::string prefix = "gau_alpha.encoder.layer.1.gau.";
  const LayerWeights<float>& layer = model.weights.layers.at(1);
  for (const auto& [row, which] : {std::pair{0, "q"}, std::pair{1, "k"}}) {
    const std::string name = prefix + which + "_scaleoffset.";
    const auto same = [](Index, Index j) { return j; };
    const auto gamma = values_of("gau_alpha_squared_relu", name + "weight");
    const auto beta = values_of("gau_alpha_squared_relu", name + "bias");
    CHECK(is_at(layer.gated_gamma.view.middle_rows(row, 1), gamma, same));
    CHECK(is_at(layer.gated_beta.view.middle_rows(row, 1), beta, same));
  }
}

TEST_CASE("layers that share weights share them") {
  const auto groups = load_model<float>(folder_of_case("albert_groups"));
  CHECK(groups.weights.layers.size() == 2);
  std::vector<Index> used;
  for (const LayerDesign& layer : groups.design.layers) used.push_back(layer.weights);
  CHECK(used == std::vector<Index>{0, 0, 1, 1});
}

TEST_CASE("16-bit and unaligned tensors are converted") {
  Parts parts("bert");
  SmallTensor& key = parts.get("bert.encoder.layer.0.attention.self.key.weight");
  key.dtype = "BF16";
  std::string half;
  for (std::size_t i = 0; i < key.bytes.size(); i += 4) half += key.bytes.substr(i + 2, 2);
  key.bytes = half;
  SmallTensor& value = parts.get("bert.encoder.layer.0.attention.self.value.bias");
  value.dtype = "F16";
  value.bytes.clear();
  for (int i = 0; i < 24; ++i) value.bytes += std::string("\x00\xBC", 2);  // -1
  parts.tensors.insert(parts.tensors.begin(), test::bytes_tensor("odd", "x"));
  const TempFolder folder;
  parts.write(folder);
  const auto model = load_model<float>(folder.path());
  CHECK(model.unused == std::vector<std::string>{"odd"});
  const LayerWeights<float>& layer = model.weights.layers.at(0);
  CHECK(layer.value.bias.view.at(0, 23) == -1.0F);
  auto wanted = values_of("bert", "bert.encoder.layer.0.attention.self.key.weight");
  for (float& x : wanted) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, 4);
    bits &= 0xFFFF0000U;
    std::memcpy(&x, &bits, 4);
  }
  CHECK(is_at(layer.key.weight.view, wanted, [](Index i, Index j) { return i * 24 + j; }));
  const auto words = values_of("bert", "bert.embeddings.word_embeddings.weight");
  CHECK(is_at(model.weights.word_table.view, words, [](Index i, Index j) { return i * 24 + j; }));
}

TEST_CASE("a decoder that differs from the word table counts, an equal one does not") {
  Parts parts("bert");
  SmallTensor decoder = parts.get("bert.embeddings.word_embeddings.weight");
  decoder.name = "cls.predictions.decoder.weight";
  parts.tensors.push_back(decoder);
  const auto tied = parts.load();
  CHECK(tied.design.head.tied);
  CHECK(tied.unused.empty());
  const float three = 3;
  std::memcpy(parts.tensors.back().bytes.data(), &three, 4);
  const auto untied = parts.load();
  CHECK_FALSE(untied.design.head.tied);
  CHECK(untied.weights.decoder.weight.view.at(0, 0) == 3);
  REQUIRE(untied.design.notes.size() == 1);
  CHECK(contains(untied.design.notes[0], "it differs from the word embeddings"));
}

TEST_CASE("what a checkpoint lacks or has besides is said") {
  const auto headless = load_model<float>(folder_of_case("bert_headless"));
  CHECK(headless.design.notes.empty());
  CHECK(headless.design.missing_head ==
        "no masked-LM head (cls.predictions.transform.dense.weight)");
  CHECK(headless.unused == std::vector<std::string>{"pooler.dense.bias", "pooler.dense.weight"});
  const auto whole = load_model<float>(folder_of_case("t5_full"));
  REQUIRE(whole.design.notes.size() == 1);
  CHECK(whole.design.notes[0].ends_with("tensors of the decoder are ignored"));
  const auto google = load_model<float>(folder_of_case("bert_google_names"));
  CHECK(google.unused.size() == 4);
}

TEST_CASE("tensors that are missing or misshapen are named") {
  Parts parts("bert");
  const std::string name = "bert.encoder.layer.1.output.dense.weight";
  parts.get(name).shape = {40, 24};
  CHECK(contains(parts.message(), name + ": shape [40,24], expected [24,40] by config.json"));
  parts.get(name).shape = {24, 40};
  CHECK(parts.message() == "(nothing thrown)");
  parts.get(name).dtype = "I32";
  CHECK(contains(parts.message(), name + ": type I32, expected a floating-point type"));
  parts.drop(name);
  CHECK(contains(parts.message(),
                 "no tensor '" + name + "', expected one of shape [24,40] for family bert"));
  parts = Parts("bert");
  parts.set("vocab_size", "2147483647");
  CHECK(
      contains(parts.message(), "word_embeddings.weight: shape [45,24], expected [2147483647,24]"));
  parts = Parts("bert");
  parts.set("num_hidden_layers", "3");
  CHECK(contains(parts.message(), "no tensor 'bert.encoder.layer.2.attention.self.query.weight'"));
}

TEST_CASE("numbers that are none are named by tensor and place") {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    Parts parts("gpt2");
    for (const char* name : {"transformer.wte.weight", "transformer.h.1.attn.c_attn.weight"}) {
      std::memcpy(parts.get(name).bytes.data() + 4 * (7 * parts.get(name).shape[1] + 5), &bad, 4);
    }
    CHECK(
        contains(parts.message(), fmt::format("transformer.wte.weight: element [7,5] is {}", bad)));
    parts.get("transformer.wte.weight") = Parts("gpt2").get("transformer.wte.weight");
    CHECK(contains(parts.message(), "transformer.h.1.attn.c_attn.weight: element [7,5] is"));
  }
  Parts parts("bert");
  parts.get("cls.predictions.bias").dtype = "F16";
  parts.get("cls.predictions.bias").bytes = std::string(88, '\0') + "\xFF\x7F";
  CHECK(contains(parts.message(), "cls.predictions.bias: element [44] is nan"));
}

TEST_CASE("what masque does not have is refused by name and value") {
  const struct {
    const char* name;
    const char* option;
    const char* value;
    const char* expected;
  } kCases[] = {
      {"bert", "hidden_act", "\"prelu\"", "hidden_act is \"prelu\", expected gelu,"},
      {"bert", "hidden_act", "3", "hidden_act is 3, expected text"},
      {"bert", "position_embedding_type", "\"relative_key\"",
       "position_embedding_type is \"relative_key\", expected \"absolute\""},
      {"bert", "add_cross_attention", "true", "add_cross_attention is true, expected false"},
      {"bert", "num_attention_heads", "5",
       "num_attention_heads is 5, expected a divisor of hidden_size, which is 24"},
      {"bert", "num_attention_heads", "0", "num_attention_heads is 0, expected 1 to 2147483647"},
      {"bert", "num_hidden_layers", "1099511627776", "expected 1 to 1000"},
      {"bert", "hidden_size", "\"24\"", "hidden_size"},
      {"bert", "layer_norm_eps", "0", "layer_norm_eps is 0, expected a number above 0"},
      {"bert", "layer_norm_eps", "-1e-5", "layer_norm_eps is -1e-5, expected a number above 0"},
      {"bert", "model_type", "\"rwkv\"", "model_type is \"rwkv\", expected albert, bart,"},
      {"llama", "model_type", "\"deepseek_v3\"",
       "; rms_norm_eps, num_key_value_heads and hidden_act are those of a layout close to "
       "llama, but models of this type are not supported"},
      {"gpt2", "scale_attn_by_inverse_layer_idx", "\"yes\"", "scale_attn_by_inverse_layer_idx"},
      {"llama_scaled", "rope_scaling", "{\"rope_type\":\"mrope\",\"factor\":2}",
       "rope_type is \"mrope\", expected default, linear, dynamic, llama3, yarn or longrope"},
      {"llama", "num_key_value_heads", "4", "num_key_value_heads is 4, expected a divisor"},
      {"llama", "head_dim", "3", "even number of rotated features"},
      {"xlnet", "attn_type", "\"tri\"", "attn_type is \"tri\", expected \"bi\" or \"uni\""},
      {"xlnet", "bi_data", "true", "bi_data is true"},
      {"t5_encoder", "feed_forward_proj", "\"gated-x\"", "feed_forward_proj is \"gated-x\""},
      {"albert", "inner_group_num", "1001", "inner_group_num is 1001"},
      {"albert", "num_hidden_groups", "9", "num_hidden_groups is 9"},
      {"modernbert", "layer_types", "[\"full_attention\"]", "layer_types is [\"full_attention\"]"},
      // transformers' class of Mistral has windows in every layer all the same.
      {"mistral", "layer_types", "[\"full_attention\",\"sliding_attention\"]",
       "expected sliding_attention for all layers, which sliding_window says"},
      {"mixtral", "layer_types", "[\"full_attention\",\"full_attention\"]",
       "in model_type mixtral all layers are alike"},
      {"llama", "model_type", "\"olmo3\"", "; nearest by its name is olmo2, but models of"},
      {"llama", "model_type", "\"cohere2\"", "; nearest by its name is cohere, but models of"},
      {"deberta_v2_conv", "conv_kernel_size", "4", "conv_kernel_size is 4, expected an odd number"},
      {"roformer_v2", "use_bias", "true", "use_bias is true, expected false"},
      {"gau_alpha", "normalization", "\"l2\"", "normalization is \"l2\""},
      {"roberta", "max_position_embeddings", "2", "expected more than pad_token_id + 1"},
  };
  for (const auto& one : kCases) {
    CAPTURE(one.option);
    CAPTURE(one.value);
    Parts parts(one.name);
    parts.set(one.option, one.value);
    const std::string message = parts.message();
    CAPTURE(message);
    CHECK(contains(message, one.expected));
    CHECK(contains(message, "config.json"));
  }
}

TEST_CASE("without a model_type the family or the class says which model of a family it is") {
  for (const std::string type : {"qwen3", "mixtral", "gemma2", "olmo2"}) {
    CAPTURE(type);
    const Parts parts(type);
    const LoadedModel<double> expected = parts.load();
    for (const bool by_class : {true, false}) {
      Parts nameless = parts;
      const std::string member = fmt::format("\"model_type\": \"{}\"", type);
      nameless.config.replace(nameless.config.find(member), member.size(),
                              "\"torchscript\": false");
      if (!by_class) nameless.set("architectures", "[]");
      const TempFolder folder;
      nameless.write(folder);
      const auto loaded = load_model<double>(folder.path(), {.family = by_class ? "" : type});
      CHECK(loaded.design.model_type == type);
      CHECK(loaded.design.layers == expected.design.layers);
      CHECK(loaded.design.head == expected.design.head);
    }
  }
}

TEST_CASE("a stored table of positions has the numbers that RoFormer computes") {
  const auto message = [](float more) {
    const test::ChangedModel model("roformer", [&](const std::string& name, std::span<float> x) {
      if (name == "roformer.encoder.embed_positions.weight") x[9] += more;
    });
    return message_of<InputError>([&] { load_model<float>(model.path(), {}); });
  };
  CHECK(message(0) == "(nothing thrown)");
  CHECK(message(1e-6F) == "(nothing thrown)");
  CHECK(contains(message(0.5F), "tensor 'roformer.encoder.embed_positions.weight' has "));
  CHECK(contains(message(0.5F), "at [1,1], expected the numbers that family roformer computes"));
}

TEST_CASE("the family is found by model_type, by architectures, or as requested") {
  Parts parts("roberta");
  parts.set("model_type", "null");
  CHECK(parts.load().design.family == "roberta");
  parts.set("architectures", "[\"MambaForCausalLM\"]");
  CHECK(contains(parts.message(), "no model_type and unknown architecture MambaForCausalLM"));
  parts.set("architectures", "[]");
  CHECK(contains(parts.message(), "no model_type, expected one of albert, bart,"));
  const std::string bert = folder_of_case("bert");
  CHECK(contains(message_of<UsageError>([&] { load_model<float>(bert, {.family = "gpt3"}); }),
                 "no family 'gpt3', expected albert, bart,"));
  CHECK(load_model<float>(bert, {.family = "tta"}).design.streams == Streams::kFixedKeys);
  const TempFolder folder;
  test::write_file(folder / "model.safetensors", test::make_safetensors(parts.tensors));
  CHECK(contains(message_of([&] { load_model<float>(folder.path()); }), "no config.json"));
}

TEST_CASE("a file cut short is refused, wherever it is cut") {
  const Parts parts("bert");
  const std::string whole = test::make_safetensors(parts.tensors);
  const TempFolder folder;
  test::write_file(folder / "config.json", parts.config);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    test::write_file(folder / "model.safetensors", whole.substr(0, size));
    CHECK(message_of([&] { load_model<float>(folder.path()); }) != "(nothing thrown)");
  }
}

TEST_CASE("every family says what it loads, and its types are its own") {
  std::vector<std::string_view> types;
  for (const Family* family : families()) {
    CHECK(!family->loads.empty());
    CHECK(find_family(family->name) == family);
    types.insert(types.end(), family->model_types.begin(), family->model_types.end());
  }
  CHECK(families().size() == 45);
  std::ranges::sort(types);
  CHECK(std::ranges::adjacent_find(types) == types.end());
}

}  // namespace
}  // namespace masque::model
