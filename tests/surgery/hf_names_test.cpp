// TensorFlow's names and those of transformers: every table goes both ways, whole models come back
// as they were, and nothing goes without a word.
#include <algorithm>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "model/family_names.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/tensorflow/tf_names.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"
#include "surgery/names/name_rules.hpp"

namespace masque::surgery {
namespace {

using namespace store;  // NOLINT(google-build-using-namespace): what is converted

using test::contains;
using test::make_safetensors;
using test::message_of;
using test::names_in;
using test::read_file;
using test::SmallTensor;
using test::TempFolder;
using test::write_file;

using Names = std::vector<std::string>;

/// Every tiny model of a family with a table.
const Names kModels = {"albert",
                       "albert_groups",
                       "albert_inner",
                       "bert",
                       "bert_gelu_new",
                       "bert_google_names",
                       "bert_headless",
                       "electra_generator",
                       "electra_discriminator",
                       "electra_generator_square",
                       "gau_alpha",
                       "gau_alpha_softmax",
                       "roformer",
                       "roformer_v2",
                       "roformer_value",
                       "tta",
                       "tta_over_bert"};

std::string model_folder(const std::string& name) {
  return std::string(MASQUE_TEST_DATA "/model/") + name;
}

std::string with_numbers(std::string pattern) {
  for (int number = 7; pattern.find("{l}") != std::string::npos; number += 5)
    pattern.replace(pattern.find("{l}"), 3, std::to_string(number));
  return pattern;
}

struct Conversion {
  TempFolder folder;
  ConvertResult run(const std::string& in, const std::string& out, NameStyle names,
                    const std::string& format = "npz") {
    ConvertRequest request;
    request.names = names;
    request.format = writer_for_path(out) == nullptr ? format : "";
    request.write.threads = 2;
    return convert_checkpoint(in, folder / out, request);
  }
};

bool noted(const ConvertResult& result, std::string_view part) {
  return std::ranges::any_of(result.notes,
                             [&](const std::string& note) { return contains(note, part); });
}

TEST_CASE("every table goes both ways, and no name stands in it twice") {
  CHECK(tf_families().size() >= 7);
  for (const TfFamily* family : tf_families()) {
    CAPTURE(family->name);
    std::set<std::string> seen;
    for (const TfRow& row : family->rows) {
      const std::string tf = with_numbers(row.tf);
      const std::map<TfKind, std::vector<std::pair<std::string, std::string>>> ends = {
          {TfKind::kDense, {{"/kernel", ".weight"}, {"/bias", ".bias"}}},
          {TfKind::kNorm, {{"/gamma", ".weight"}, {"/beta", ".bias"}}},
          {TfKind::kTable, {{"", ".weight"}}},
          {TfKind::kTensor, {{"", ""}}}};
      for (const auto& [tf_end, hf_end] : ends.at(row.kind)) {
        const std::string from = tf + tf_end;
        const std::string to = with_numbers(row.hf) + hf_end;
        CAPTURE(from);
        const auto hf = hf_name(*family, from);
        REQUIRE(hf.has_value());
        CHECK(hf->name == to);
        CHECK(hf->transposed == (tf_end == "/kernel"));
        const auto back = tf_name(*family, to);
        REQUIRE(back.has_value());
        CHECK(back->name == from);
        CHECK(back->transposed == hf->transposed);
        CHECK(seen.insert(from).second);
        CHECK(seen.insert("hf " + to).second);
        CHECK_FALSE(hf_name(*family, from + "/adam_m").has_value());
        CHECK(is_optimizer_state(from + "/adam_v"));
        CHECK_FALSE(is_optimizer_state(from));
      }
    }
    CHECK(find_tf_family(open_checkpoint(model_folder("bert")), std::nullopt) == nullptr);
  }
}

TEST_CASE("names that are nearly right are none") {
  const Checkpoint bert = open_checkpoint(model_folder("bert"));
  const auto found = ModelConfig::find(bert.folder());
  const TfFamily* table = tf_names(bert, found, hf_names(bert, found)).family;
  REQUIRE(table != nullptr);
  for (const char* name :
       {"bert/encoder/layer_01/output/dense/kernel", "bert/encoder/layer_/output/dense/kernel",
        "bert/encoder/layer_1/output/dense", "bert/encoder/layer_1/output/dense/gamma",
        "bert/embeddings/word_embeddings/kernel", "embeddings/word_embeddings", ""}) {
    CAPTURE(name);
    CHECK_FALSE(hf_name(*table, name).has_value());
  }
  CHECK(is_optimizer_state("global_step"));
  CHECK_FALSE(is_optimizer_state("bert/global_step"));
}

TEST_CASE("the names of Google's checkpoints, one by one") {
  const std::map<std::string, std::map<std::string, std::string>> expected = {
      {"bert",
       {{"bert.encoder.layer.1.attention.self.key.weight",
         "bert/encoder/layer_1/attention/self/key/kernel"},
        {"bert.embeddings.LayerNorm.bias", "bert/embeddings/LayerNorm/beta"},
        {"cls.predictions.bias", "cls/predictions/output_bias"}}},
      {"albert_inner",
       {{"albert.encoder.albert_layer_groups.0.albert_layers.1.ffn_output.weight",
         "bert/encoder/transformer/group_0/inner_group_1/ffn_1/intermediate/output/dense/kernel"},
        {"albert.encoder.albert_layer_groups.0.albert_layers.1.full_layer_layer_norm.weight",
         "bert/encoder/transformer/group_0/inner_group_1/LayerNorm_1/gamma"}}},
      {"electra_generator",
       {{"electra.embeddings.word_embeddings.weight", "electra/embeddings/word_embeddings"},
        {"electra.encoder.layer.0.output.dense.bias",
         "generator/encoder/layer_0/output/dense/bias"},
        {"generator_lm_head.bias", "generator_predictions/output_bias"}}},
      {"electra_discriminator",
       {{"discriminator_predictions.dense_prediction.weight",
         "discriminator_predictions/dense_1/kernel"}}},
      {"gau_alpha",
       {{"gau_alpha.encoder.layer.1.gau.q_scaleoffset.weight",
         "GAU_alpha/encoder/layer_1/gau/q_scaleoffset/gamma"}}},
      {"roformer", {{"roformer.pooler.dense.weight", "bert/pooler/dense/kernel"}}}};
  for (const auto& [model, pairs] : expected) {
    const Checkpoint checkpoint = open_checkpoint(model_folder(model));
    const auto found = ModelConfig::find(checkpoint.folder());
    const TfFamily* table = tf_names(checkpoint, found, hf_names(checkpoint, found)).family;
    REQUIRE(table != nullptr);
    for (const auto& pair : pairs) {
      const auto& hf = pair.first;
      const auto& tf = pair.second;
      CAPTURE(hf);
      const auto name = tf_name(*table, hf);
      CHECK((name ? name->name : "none") == tf);
    }
  }
}

TEST_CASE("a model under TensorFlow's names comes back as it was") {
  for (const std::string& model : kModels) {
    CAPTURE(model);
    Conversion conversion;
    conversion.run(model_folder(model), "tf", NameStyle::kTf);
    const Checkpoint tf = open_checkpoint(conversion.folder / "tf");
    const auto config = find_config(tf);
    REQUIRE(config.has_value());
    CHECK(config->path().ends_with("_config.json"));
    REQUIRE(find_tf_family(tf, config) != nullptr);
    for (const TensorInfo& tensor : tf.tensors()) {
      CAPTURE(tensor.name);
      CHECK(hf_name(*find_tf_family(tf, config), tensor.name).has_value());
    }
    conversion.run(conversion.folder / "tf", "hf", NameStyle::kHf, "safetensors");
    const Checkpoint before = open_checkpoint(model_folder(model));
    const Checkpoint after = open_checkpoint(conversion.folder / "hf");
    CompareOptions options;
    options.canonical = model::canonical_name;
    for (const TensorChange& change : compare_checkpoints(before, after, options)) {
      CAPTURE(change.name);
      CHECK(change.kind == ChangeKind::kOnlyA);
      // What readers make themselves, or what is tied.
      CHECK((change.name.ends_with("embed_positions.weight") ||
             change.name.ends_with("position_ids") || change.name.ends_with("decoder.weight")));
    }
    CHECK((read_file(conversion.folder / "hf/config.json") ==
           read_file(model_folder(model) + "/config.json")));
    CHECK_FALSE(std::ranges::count(names_in(conversion.folder / "hf"), "bert_config.json") > 0);
  }
}

TEST_CASE("kernels are transposed, element by element") {
  Conversion conversion;
  conversion.run(model_folder("bert"), "tf", NameStyle::kTf);
  const Checkpoint hf = open_checkpoint(model_folder("bert"));
  const Checkpoint tf = open_checkpoint(conversion.folder / "tf");
  const std::string weight = bytes_of(hf, "bert.encoder.layer.0.intermediate.dense.weight");
  const std::string kernel = bytes_of(tf, "bert/encoder/layer_0/intermediate/dense/kernel");
  REQUIRE(tf.get("bert/encoder/layer_0/intermediate/dense/kernel").shape == Shape{24, 40});
  for (std::size_t out = 0; out < 40; ++out) {
    for (std::size_t in = 0; in < 24; ++in)
      CHECK(weight.substr((out * 24 + in) * 4, 4) == kernel.substr((in * 40 + out) * 4, 4));
  }
  CHECK(bytes_of(hf, "bert.embeddings.word_embeddings.weight") ==
        bytes_of(tf, "bert/embeddings/word_embeddings"));
}

/// A config with nothing but sizes, as Google's folders have it.
std::string google_config(const std::string& config) {
  std::string text = config;
  for (const char* field : {"model_type", "architectures", "norm_type", "use_bias", "dtype",
                            "tie_word_embeddings", "transformers_version"}) {
    if (parse_json_file(text, "config").find(field) != nullptr)
      text = erase_json_member(text, {field});
  }
  return text;
}

TEST_CASE("what a Google folder's config lacks is given by the names") {
  const std::map<std::string, std::pair<std::string, std::string>> expected = {
      {"bert", {"bert", "BertForMaskedLM"}},
      {"bert_headless", {"bert", "BertModel"}},
      {"tta", {"tta", "BertForMaskedLM"}},
      {"albert", {"albert", "AlbertForMaskedLM"}},
      {"electra_generator", {"electra", "ElectraForMaskedLM"}},
      {"electra_discriminator", {"electra", "ElectraForPreTraining"}},
      {"roformer", {"roformer", "RoFormerForMaskedLM"}},
      {"roformer_v2", {"roformer", "RoFormerForMaskedLM"}},
      {"gau_alpha", {"gau_alpha", "GAUAlphaForMaskedLM"}}};
  for (const auto& entry : expected) {
    const auto& model = entry.first;
    const auto& fields = entry.second;
    CAPTURE(model);
    Conversion conversion;
    conversion.run(model_folder(model), "tf", NameStyle::kTf);
    const std::string path = find_config(open_checkpoint(conversion.folder / "tf"))->path();
    write_file(path, google_config(read_file(path)));
    const auto config = find_config(open_checkpoint(conversion.folder / "tf"));
    REQUIRE(config.has_value());
    CHECK(config->model_type() == fields.first);
    CHECK(config->architectures() == Names{fields.second});
    CHECK(config->string("norm_type") ==
          (model == "roformer_v2" ? std::optional<std::string>("rms_norm") : std::nullopt));
    if (model == "tta") CHECK(config->size("type_vocab_size") == 0);
    conversion.run(conversion.folder / "tf", "hf", NameStyle::kHf, "safetensors");
    CHECK((read_file(conversion.folder / "hf/config.json") == config->text()));
    CHECK(config->tie_word_embeddings() == true);
  }
}

SmallTensor floats(const std::string& name, const std::vector<std::uint64_t>& shape,
                   std::uint64_t seed) {
  std::uint64_t count = 4;
  for (const std::uint64_t size : shape) count *= size;
  return {name, "F32", shape, random_bytes(seed, count)};
}

std::vector<SmallTensor> small_bert() {
  return {floats("bert/embeddings/word_embeddings", {5, 2}, 1),
          floats("bert/embeddings/position_embeddings", {3, 2}, 2),
          floats("bert/embeddings/token_type_embeddings", {2, 2}, 3),
          floats("bert/embeddings/word_embeddings/adam_m", {5, 2}, 4),
          floats("bert/pooler/dense/kernel", {2, 2}, 5),
          floats("cls/seq_relationship/output_weights", {2, 2}, 6),
          floats("global_step", {}, 7)};
}

TEST_CASE("an optimizer's state goes with a word, and what no table knows stays") {
  Conversion conversion;
  auto tensors = small_bert();
  tensors.push_back(floats("output_weights", {2, 2}, 8));
  tensors.push_back(floats("bert/pooler/dense/odd/kernel", {2}, 9));
  write_file(conversion.folder / "in.safetensors", make_safetensors(tensors));
  const std::string in = conversion.folder / "in.safetensors";
  const ConvertResult result = conversion.run(in, "out.safetensors", NameStyle::kHf);
  CHECK(noted(result,
              "2 tensors of the optimizer's state left out: "
              "'bert/embeddings/word_embeddings/adam_m', 'global_step'"));
  CHECK(noted(result,
              "2 names unknown to the table 'bert' kept: 'output_weights', "
              "'bert/pooler/dense/odd/kernel'"));
  CHECK(result.unknown == Names{"output_weights", "bert/pooler/dense/odd/kernel"});
  const Checkpoint out = open_checkpoint(conversion.folder / "out.safetensors");
  CHECK(out.tensors().size() == tensors.size() - 2);
  CHECK(out.find("output_weights") != nullptr);
  // Of two rows, as the pairs of BERT's head: not transposed.
  CHECK(bytes_of(out, "cls.seq_relationship.weight") == tensors[5].bytes);
  const Checkpoint kept = (conversion.run(in, "kept.safetensors", NameStyle::kKeep),
                           open_checkpoint(conversion.folder / "kept.safetensors"));
  CHECK(compare_checkpoints(open_checkpoint(in), kept, {}).empty());
}

TEST_CASE("--strict writes nothing if a name is unknown") {
  Conversion conversion;
  auto tensors = small_bert();
  write_file(conversion.folder / "good.safetensors", make_safetensors(tensors));
  tensors.push_back(floats("output_weights", {2, 2}, 8));
  write_file(conversion.folder / "bad.safetensors", make_safetensors(tensors));
  ConvertRequest request;
  request.names = NameStyle::kHf;
  request.strict = true;
  const auto run = [&](const std::string& in) {
    return convert_checkpoint(conversion.folder / in, conversion.folder / "out.safetensors",
                              request);
  };
  CHECK(run("bad.safetensors").unknown == Names{"output_weights"});
  CHECK(conversion.folder.names() == Names{"bad.safetensors", "good.safetensors"});
  CHECK(run("good.safetensors").unknown.empty());
  CHECK(conversion.folder.names() ==
        Names{"bad.safetensors", "good.safetensors", "out.safetensors"});
  request.names = NameStyle::kKeep;
  CHECK(contains(message_of<UsageError>([&] { run("good.safetensors"); }), "strict"));
}

TEST_CASE("a head of its own has no name in TensorFlow") {
  Conversion conversion;
  const auto table = floats("bert.embeddings.word_embeddings.weight", {5, 2}, 1);
  const auto bias = floats("cls.predictions.bias", {5}, 2);
  auto decoder = table;
  decoder.name = "cls.predictions.decoder.weight";
  auto decoder_bias = bias;
  decoder_bias.name = "cls.predictions.decoder.bias";
  write_file(conversion.folder / "tied/model.safetensors",
             make_safetensors({table, decoder, bias, decoder_bias}));
  write_file(conversion.folder / "tied/config.json",
             R"({"model_type":"bert","tie_word_embeddings":false})");
  const ConvertResult result = conversion.run(conversion.folder / "tied", "tf", NameStyle::kTf);
  CHECK(noted(result, "'cls.predictions.decoder.weight' is left out: it equals"));
  CHECK(noted(result, "'cls.predictions.decoder.bias' is left out: it equals"));
  CHECK(open_checkpoint(conversion.folder / "tf").tensors().size() == 2);
  // There the head is tied, whatever the config said.
  CHECK(find_config(open_checkpoint(conversion.folder / "tf"))->tie_word_embeddings() == true);
  decoder.bytes[3] = static_cast<char>(decoder.bytes[3] ^ 1);
  write_file(conversion.folder / "own.safetensors", make_safetensors({table, decoder, bias}));
  CHECK(contains(
      message_of([&] {
        conversion.run(conversion.folder / "own.safetensors", "x.safetensors", NameStyle::kTf);
      }),
      "'cls.predictions.decoder.weight' differs from 'bert.embeddings.word_embeddings.weight'"));
  // The bias of an untied head alone is the bias.
  write_file(conversion.folder / "b.safetensors", make_safetensors({table, decoder_bias}));
  conversion.run(conversion.folder / "b.safetensors", "c.safetensors", NameStyle::kTf);
  CHECK(open_checkpoint(conversion.folder / "c.safetensors").find("cls/predictions/output_bias") !=
        nullptr);
}

TEST_CASE("a model without a table is refused by name") {
  Conversion conversion;
  CHECK(
      contains(message_of([&] { conversion.run(model_folder("gpt2"), "x", NameStyle::kTf); }),
               "model_type \"gpt2\": TensorFlow's names are known only for albert, bert, electra"));
}

TEST_CASE("of an ELECTRA file with two models the config chooses one") {
  const TempFolder folder;
  const auto body = [](const std::string& name, std::uint64_t hidden, std::uint64_t inner) {
    return std::vector<SmallTensor>{
        floats(name + "/encoder/layer_0/attention/self/query/kernel", {hidden, hidden}, hidden),
        floats(name + "/encoder/layer_0/intermediate/dense/kernel", {hidden, inner}, inner)};
  };
  const auto write = [&](std::uint64_t inner) {
    std::vector<SmallTensor> tensors = {floats("electra/embeddings/word_embeddings", {5, 2}, 1)};
    for (const auto& more : {body("electra", 4, 6), body("generator", 4, inner)})
      tensors.insert(tensors.end(), more.begin(), more.end());
    write_file(folder / "a/model.safetensors", make_safetensors(tensors));
  };
  const auto chosen = [&](const std::string& config) {
    const auto parsed = ModelConfig::parse(config, "config.json");
    return std::string(find_tf_family(open_checkpoint(folder / "a"), parsed)->name);
  };
  write(3);
  CHECK(chosen(R"({"hidden_size":4,"intermediate_size":6})") == "electra");
  CHECK(chosen(R"({"hidden_size":4,"intermediate_size":3})") == "electra-generator");
  CHECK(chosen(R"({"architectures":["ElectraForMaskedLM"]})") == "electra-generator");
  CHECK(chosen("{}") == "electra");
  write(6);
  CHECK(chosen(R"({"hidden_size":4,"intermediate_size":6})") == "electra");
}

}  // namespace
}  // namespace masque::surgery
