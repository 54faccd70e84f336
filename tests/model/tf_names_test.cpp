// A folder as Google's and bert4keras' users have it computes what its twin for transformers does,
// bit by bit.
#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "model/weights.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"

namespace masque::model {
namespace {

using test::TempFolder;

constexpr std::array<std::string_view, 14> kModels{
    "albert",        "albert_groups",     "albert_inner",          "bert",
    "bert_gelu_new", "electra_generator", "electra_discriminator", "electra_generator_square",
    "gau_alpha",     "roformer",          "roformer_v2",           "roformer_value",
    "tta",           "tta_over_bert"};

/// The model under TensorFlow's names, with a config that says nothing but sizes.
void make_google_folder(const std::string& from, const std::string& to, const char* format) {
  surgery::ConvertRequest request;
  request.names = surgery::NameStyle::kTf;
  request.format = format;
  surgery::convert_checkpoint(from, to, request);
  const std::string path = store::ModelConfig::find(to)->path();
  std::string text = test::read_file(path);
  for (const char* field : {"model_type", "architectures", "norm_type", "use_bias"}) {
    if (parse_json_file(text, path).find(field) != nullptr) text = erase_json_member(text, {field});
  }
  test::write_file(path, text);
}

template <class T>
bool same(const Weight<T>& a, const Weight<T>& b) {
  return a.view.rows == b.view.rows && a.view.columns == b.view.columns &&
         std::ranges::equal(a.span(), b.span());
}

TEST_CASE("models under TensorFlow's names have the weights of their twins") {
  int seen = 0;
  for (const test::ModelCase& one : test::model_cases()) {
    if (std::ranges::find(kModels, one.name) == kModels.end()) continue;
    ++seen;
    for (const char* format : {"npz", "safetensors"}) {
      CAPTURE(one.name);
      CAPTURE(format);
      const TempFolder folder;
      make_google_folder(one.folder, folder / "tf", format);
      const LoadOptions options{.family = one.name == "tta_over_bert" ? "tta" : ""};
      const auto hf = load_model<float>(one.folder, options);
      const auto tf = load_model<float>(folder / "tf", options);
      CHECK(hf.design.family == tf.design.family);
      CHECK(hf.design.head.kind == tf.design.head.kind);
      CHECK(hf.design.head.tied == tf.design.head.tied);
      CHECK(hf.design.norm.kind == tf.design.norm.kind);
      CHECK(hf.design.type_vocab_size == tf.design.type_vocab_size);
      CHECK(same(hf.weights.word_table, tf.weights.word_table));
      CHECK(same(hf.weights.decoder.weight, tf.weights.decoder.weight));
      CHECK(same(hf.weights.decoder.bias, tf.weights.decoder.bias));
      CHECK(same(hf.weights.position_table, tf.weights.position_table));
      CHECK(same(hf.weights.segment_table, tf.weights.segment_table));
      CHECK(same(hf.weights.embedding_norm.bias, tf.weights.embedding_norm.bias));
      CHECK(same(hf.weights.embedding_projection.weight, tf.weights.embedding_projection.weight));
      CHECK(same(hf.weights.head_transform.weight, tf.weights.head_transform.weight));
      CHECK(same(hf.weights.head_norm.weight, tf.weights.head_norm.weight));
      REQUIRE(hf.weights.layers.size() == tf.weights.layers.size());
      for (std::size_t i = 0; i < hf.weights.layers.size(); ++i) {
        const auto& a = hf.weights.layers[i];
        const auto& b = tf.weights.layers[i];
        for (const auto member :
             {&LayerWeights<float>::query, &LayerWeights<float>::key, &LayerWeights<float>::value,
              &LayerWeights<float>::output, &LayerWeights<float>::up, &LayerWeights<float>::down,
              &LayerWeights<float>::gated_input}) {
          CHECK(same((a.*member).weight, (b.*member).weight));
          CHECK(same((a.*member).bias, (b.*member).bias));
        }
        CHECK(same(a.attention_norm.weight, b.attention_norm.weight));
        CHECK(same(a.feed_forward_norm.bias, b.feed_forward_norm.bias));
        CHECK(same(a.gated_gamma, b.gated_gamma));
      }
    }
  }
  CHECK(seen == static_cast<int>(kModels.size()));
}

TEST_CASE("what is wrong with such a folder is said in its own names") {
  const TempFolder folder;
  make_google_folder(MASQUE_TEST_DATA "/model/bert", folder / "tf", "safetensors");
  const store::Checkpoint whole = store::open_checkpoint(folder / "tf");
  std::vector<test::SmallTensor> tensors;
  for (const store::TensorInfo& info : whole.tensors()) {
    std::string bytes(info.bytes(), '\0');
    whole.read(info, 0, std::as_writable_bytes(std::span(bytes)));
    tensors.push_back({info.name, std::string(dtype_name(info.dtype)), info.shape, bytes});
  }
  const auto message = [&](const std::vector<test::SmallTensor>& changed) {
    test::write_file(folder / "tf/model.safetensors", test::make_safetensors(changed));
    return test::message_of([&] { load_model<float>(folder / "tf", {}); });
  };
  const std::string name = "bert/encoder/layer_1/output/dense/kernel";
  auto lost = tensors;
  std::erase_if(lost, [&](const auto& tensor) { return tensor.name == name; });
  CHECK(test::contains(message(lost), "no tensor '" + name + "', expected one of shape [40,24]"));
  auto transposed = tensors;
  std::swap(std::ranges::find(transposed, name, &test::SmallTensor::name)->shape[0],
            std::ranges::find(transposed, name, &test::SmallTensor::name)->shape[1]);
  CHECK(test::contains(message(transposed), name + ": shape [24,40], expected [40,24]"));
  auto map = tensors;
  map.push_back(tensors.front());
  map.back().name += "/adam_m";
  CHECK(message(map) == "(nothing thrown)");
  const auto loaded = load_model<float>(folder / "tf", {});
  CHECK(loaded.unused.empty());
  CHECK(std::ranges::count(loaded.design.notes, "1 tensors of the optimizer's state are ignored") ==
        1);
}

}  // namespace
}  // namespace masque::model
