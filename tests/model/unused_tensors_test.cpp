// What stands next to a model's weights is used, refused by name, or known to change nothing.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json/json.hpp"
#include "model/weights.hpp"
#include "store/checkpoint.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using test::contains;
using test::SmallTensor;

/// A checkpoint of tests/data/model, of which a test changes parts.
struct ChangedCase {
  std::string config;
  std::vector<SmallTensor> tensors;
  std::string metadata = {};  ///< a JSON object

  explicit ChangedCase(const std::string& name) {
    const std::string folder = std::string(MASQUE_TEST_DATA "/model/") + name;
    config = test::read_file(folder + "/config.json");
    const store::Checkpoint checkpoint = store::open_checkpoint(folder);
    for (const store::TensorInfo& info : checkpoint.tensors()) {
      std::string bytes(info.bytes(), '\0');
      checkpoint.read(info, 0, std::as_writable_bytes(std::span(bytes)));
      tensors.push_back({info.name, std::string(dtype_name(info.dtype)), info.shape, bytes});
    }
  }
  ChangedCase& rename(const std::string& from, const std::string& to) {
    const auto found = std::ranges::find(tensors, from, &SmallTensor::name);
    REQUIRE(found != tensors.end());
    found->name = to;
    return *this;
  }
  ChangedCase& add(const std::string& name) {
    tensors.push_back(test::bytes_tensor(name, std::string(4, '\0')));
    tensors.back().dtype = "F32";
    tensors.back().shape = {1};
    return *this;
  }
  ChangedCase& set(const std::string& key, const std::string& value) {
    config = set_json_member(config, {key}, value);
    return *this;
  }
  ChangedCase& put_before_names(const std::string& prefix) {
    for (SmallTensor& tensor : tensors) tensor.name = prefix + tensor.name;
    return *this;
  }
  LoadedModel<float> load(const std::string& family = "") const {
    const test::TempFolder folder;
    test::write_file(folder / "config.json", config);
    test::write_file(folder / "model.safetensors", test::make_safetensors(tensors, metadata));
    return load_model<float>(folder.path(), {.family = family});
  }
  std::string message(const std::string& family = "") const {
    return test::message_of([&] { load(family); });
  }
};

TEST_CASE("an unused tensor next to those that are used is refused") {
  for (const auto& [name, tensor] : std::vector<std::pair<std::string, std::string>>{
           {"llama", "model.layers.0.self_attn.q_proj.bias"},
           {"llama", "model.layers.1.self_attn.q_norm.weight"},
           {"llama", "model.layers.0.pre_feedforward_layernorm.weight"},
           {"llama", "lm_head.bias"},
           {"bert", "bert.embeddings.task_type_embeddings.weight"},
           {"bert", "bert.encoder.layer.1.output.adapter.weight"},
           {"bert_headless", "encoder.layer.0.crossattention.self.query.weight"},
           {"gpt2", "transformer.h.0.attn.c_attn.lora_A.default.weight"},
           {"gpt2", "lm_head.bias"},
           {"gpt_neox", "gpt_neox.layers.0.attention.q_norm.weight"},
           {"t5_encoder", "encoder.block.0.layer.2.weight"},
           {"xlnet", "transformer.layer.0.rel_attn.extra"},
           {"mpnet", "mpnet.encoder.layer.0.attention.attn.gate.weight"},
           {"modernbert", "model.layers.1.attn.Wqkv.bias"},
           {"albert", "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.gate.weight"}}) {
    CAPTURE(tensor);
    CHECK(contains(ChangedCase(name).add(tensor).message(), "tensor '" + tensor + "' is not used"));
  }
}

TEST_CASE("tensors that change nothing stay harmless") {
  for (const auto& [name, tensor] : std::vector<std::pair<std::string, std::string>>{
           {"llama", "model.layers.0.self_attn.rotary_emb.inv_freq"},
           {"llama", "model.layers.0.self_attn.rotary_emb.cos_cached"},
           {"llama", "score.weight"},
           {"bert", "bert.pooler.dense.weight"},
           {"bert", "cls.seq_relationship.weight"},
           {"bert", "bert.embeddings.position_ids"},
           {"gpt2", "transformer.h.0.attn.masked_bias"},
           {"deberta_v3", "mask_predictions.dense.weight"},
           {"roberta", "classifier.dense.weight"}}) {
    CAPTURE(tensor);
    CHECK(ChangedCase(name).add(tensor).message() == "(nothing thrown)");
  }
}

TEST_CASE("layers after the last one of config.json are left out, with a note") {
  const auto model = ChangedCase("bert").set("num_hidden_layers", "1").load();
  REQUIRE(model.design.notes.size() == 1);
  CHECK(model.design.notes[0] ==
        "layers 1 to 1 of the weights are ignored: config.json has 1 layers");
}

TEST_CASE("weights with scales are refused") {
  const std::string weight = "model.layers.0.mlp.up_proj.weight";
  for (const char* scale : {"_scale", "_scale_inv", "_zero_point", ".absmax"}) {
    CHECK(contains(ChangedCase("llama").add(weight + scale).message(),
                   "'" + weight + "' (F32) has the scale '" + weight + scale + "'"));
  }
  for (const char* scale : {"SCB", "scales", "scale_weight"}) {
    CHECK(contains(
        ChangedCase("llama").add("model.layers.0.mlp.up_proj." + std::string(scale)).message(),
        "quantised weights are not supported"));
  }
  CHECK(contains(ChangedCase("llama").set("quantization_config", R"({"bits": 8})").message(),
                 "quantization_config.quant_method is absent, expected one of awq"));
}

TEST_CASE("a tied table is read under the name of its head") {
  const auto same = [](const LoadedModel<float>& a, const std::string& name) {
    const auto b = load_model<float>(std::string(MASQUE_TEST_DATA "/model/") + name);
    CHECK(std::ranges::equal(a.weights.word_table.span(), b.weights.word_table.span()));
    CHECK(a.design.head.kind == b.design.head.kind);
    CHECK(a.design.head.tied == b.design.head.tied);
    CHECK(a.unused == b.unused);
  };
  for (const auto& [name, table, head] : std::vector<std::array<std::string, 3>>{
           {"gpt2", "transformer.wte.weight", "lm_head.weight"},
           {"roberta", "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"},
           {"modernbert", "model.embeddings.tok_embeddings.weight", "decoder.weight"},
           {"t5_encoder", "shared.weight", "decoder.embed_tokens.weight"},
           {"bert", "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"}}) {
    CAPTURE(name);
    ChangedCase changed(name);
    changed.rename(table, head);
    same(changed.load(), name);  // the config ties them
    changed.metadata = fmt::format("{{{}:{}}}", quote_json(table), quote_json(head));
    same(changed.load(), name);
  }
  // Not tied, but the file says that both are one.
  ChangedCase neox("gpt_neox_serial");
  neox.rename("gpt_neox.embed_in.weight", "embed_out.weight");
  neox.set("tie_word_embeddings", "false");
  CHECK(contains(neox.message(), "no tensor 'gpt_neox.embed_in.weight'"));
  neox.metadata = R"({"gpt_neox.embed_in.weight": "embed_out.weight"})";
  CHECK(neox.message() == "(nothing thrown)");
}

TEST_CASE("a prefix of a training program is named with the way to remove it") {
  for (const auto& [prefix, pattern] : std::vector<std::pair<std::string, std::string>>{
           {"module.", "module\\."},
           {"_orig_mod.", "_orig_mod\\."},
           {"base_model.model.", "base_model\\.model\\."},
           {"model.", "model\\."}}) {
    for (const char* name : {"bert", "gpt2", "bert_headless", "t5_encoder", "llama"}) {
      CAPTURE(name);
      CHECK(contains(ChangedCase(name).put_before_names(prefix).message(),
                     "; names begin with '" + prefix + "', which \"ckpt rename "));
      CHECK(contains(ChangedCase(name).put_before_names(prefix).message(),
                     " OUTPUT 's/^" + pattern + "//'\" removes"));
    }
  }
  // Another family's prefix is none of these.
  CHECK(!contains(ChangedCase("roberta").set("model_type", "\"bert\"").message(), "names begin"));
}

TEST_CASE("a family that is named reads only models that compute the same") {
  for (const char* type : {"gemma", "mistral"}) {
    CHECK(contains(
        ChangedCase("llama").set("model_type", '"' + std::string(type) + '"').message("llama"),
        "model_type is \"" + std::string(type) + "\", expected llama or none"));
  }
  CHECK(
      contains(ChangedCase("bert").message("roberta"), "model_type is \"bert\", expected roberta"));
  CHECK(ChangedCase("bert").message("tta") == "(nothing thrown)");
}

TEST_CASE("unknown keys of config.json are named in one note") {
  const auto model = ChangedCase("bert")
                         .set("foo", "1")
                         .set("_bar", "2")
                         .set("masque.mlm_correct", "\"x\"")
                         .set("baz", "null")
                         .set("qux", "{}")
                         .load();
  REQUIRE(model.design.notes.size() == 1);
  CHECK(model.design.notes[0] == "config.json: unknown keys are not used: foo, qux");
}

/// Gives the case the tensors of a classifier of texts with one number.
void add_classifier(const std::string& prefix, ChangedCase& changed) {
  changed.set("problem_type", "\"regression\"").set("classifier_pooling", "\"cls\"");
  const auto tensor = [&](const std::string& name, Shape shape) {
    std::uint64_t size = 4;
    for (const std::uint64_t d : shape) size *= d;
    changed.add(name);
    changed.tensors.back().shape = std::move(shape);
    changed.tensors.back().bytes = std::string(size, '\0');
  };
  tensor("classifier.weight", {1, 24});
  tensor("classifier.bias", {1});
  tensor(prefix + "pooler.dense.weight", {24, 24});
  tensor(prefix + "pooler.dense.bias", {24});
}

TEST_CASE("other heads are not read as a head for texts") {
  ChangedCase changed("bert");
  add_classifier("bert.", changed);
  CHECK(changed.load().design.head.kind == HeadKind::kText);
  changed.set("architectures", R"(["BertForTokenClassification"])");
  CHECK(contains(changed.message(), "architectures is BertForTokenClassification, expected"));
  // DeBERTa's pooler has another activation, whatever a foreign key says.
  ChangedCase deberta("deberta_v3");
  add_classifier("", deberta);
  CHECK(deberta.load().design.head.kind == HeadKind::kText);
  deberta.set("architectures", R"(["DebertaV2ForSequenceClassification"])");
  CHECK(contains(deberta.message(),
                 "architectures is DebertaV2ForSequenceClassification with "
                 "classifier_pooling, expected"));
}

}  // namespace
}  // namespace masque::model
