// New names: the tensors and every index follow, and nothing else changes.
#include "surgery/names/rename_tensors.hpp"

#include <doctest/doctest.h>

#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"

namespace masque::surgery {
namespace {

using namespace store;  // NOLINT(google-build-using-namespace): what is converted

using test::contains;
using test::make_safetensors;
using test::message_of;
using test::read_file;
using test::SmallTensor;
using test::TempFolder;
using test::write_file;

using Names = std::vector<std::string>;

SmallTensor matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return {name, "F32", {rows, columns}, raw(values)};
}

SmallTensor vector(const std::string& name, float value) {
  return {name, "F32", {1}, raw<float>({value})};
}

Names names_of(const Checkpoint& checkpoint) {
  Names names;
  for (const TensorInfo& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

TEST_CASE("a file keeps its tensors under their new names, sorted if it was") {
  const TempFolder folder;
  write_file(folder / "in.safetensors",
             make_safetensors({vector("a", 1), vector("b", 2), vector("c", 3)},
                              R"({"format":"pt","note":"kept"})"));
  const Checkpoint in = open_checkpoint(folder / "in.safetensors");
  rename_tensors(in, {{"a", {"z"}}, {"b", {"a"}}}, folder / "out.safetensors", {});
  CHECK((read_file(folder / "out.safetensors") ==
         make_safetensors({vector("a", 2), vector("c", 3), vector("z", 1)},
                          R"({"format":"pt","note":"kept"})")));
  // Two names exchanged, and back: the same bytes.
  const NameMap swapped = {{"a", {"b"}}, {"b", {"a"}}};
  rename_tensors(in, swapped, folder / "x.safetensors", {});
  rename_tensors(open_checkpoint(folder / "x.safetensors"), swapped, folder / "y.safetensors", {});
  CHECK((read_file(folder / "y.safetensors") == read_file(folder / "in.safetensors")));
}

TEST_CASE("clashes, unknown names and empty ones are refused") {
  const TempFolder folder;
  write_file(folder / "in.safetensors", make_safetensors({vector("alpha", 1), vector("beta", 2)}));
  const Checkpoint in = open_checkpoint(folder / "in.safetensors");
  const auto why = [&](const NameMap& names) {
    return message_of([&] { rename_tensors(in, names, folder / "out.safetensors", {}); });
  };
  CHECK(contains(why({{"alpha", {"beta"}}}),
                 "tensors 'alpha' and 'beta' would both be called 'beta'"));
  CHECK(contains(why({{"alpha", {"x"}}, {"beta", {"x"}}}), "both be called 'x'"));
  CHECK(contains(why({{"alhpa", {"x"}}}), "no tensor 'alhpa'; did you mean 'alpha'?"));
  CHECK(contains(why({{"alpha", {""}}}), "tensor 'alpha': the new name is empty"));
  CHECK(contains(message_of<UsageError>([&] {
                   rename_tensors(in, {{"alpha", {"x"}}}, folder / "out.npz", {});
                 }),
                 "the file stays safetensors"));
  CHECK(folder.names() == Names{"in.safetensors"});
}

TEST_CASE("an index follows, and untouched shards stay the same bytes") {
  const TempFolder folder;
  write_file(folder / "in/one.safetensors", make_safetensors({vector("a", 1), vector("b", 2)}));
  write_file(folder / "in/two.safetensors", make_safetensors({vector("c", 3)}));
  write_file(folder / "in/model.safetensors.index.json",
             "{\"weight_map\" : {\"a\" :\"one.safetensors\", \"b\": \"one.safetensors\",\n"
             "\"c\"\n:\"two.safetensors\"}, \"metadata\": {\"a\": 1}}");
  write_file(folder / "in/vocab.txt", "x\n");
  rename_tensors(open_checkpoint(folder / "in"), {{"a", {"n\"w"}}}, folder / "out", {});
  CHECK(names_of(open_checkpoint(folder / "out")) == Names{"b", "n\"w", "c"});
  CHECK(read_file(folder / "out/model.safetensors.index.json") ==
        "{\"weight_map\" : {\"n\\\"w\" :\"one.safetensors\", \"b\": \"one.safetensors\",\n"
        "\"c\"\n:\"two.safetensors\"}, \"metadata\": {\"a\": 1}}");
  CHECK((read_file(folder / "out/two.safetensors") == read_file(folder / "in/two.safetensors")));
  CHECK(read_file(folder / "out/vocab.txt") == "x\n");
}

TEST_CASE("a table of names is lines of two columns") {
  const NameMap names = parse_name_map("a\tb\r\n\nc d\te=f\n", "map");
  REQUIRE(names.size() == 2);
  CHECK(names.at("a").name == "b");
  CHECK(names.at("c d").name == "e=f");
  for (const char* bad : {"a", "a b", "a\tb\tc"}) {
    CHECK(contains(message_of([&] { parse_name_map(bad, "map"); }),
                   "map: line 1: expected OLD, a tab and NEW"));
  }
  CHECK(contains(message_of([&] { parse_name_map("a\tb\n\na\tc", "map"); }),
                 "map: line 3: a second new name for 'a'"));
}

/// The checkpoint with the names of transformers; its config may be empty.
struct Hf {
  TempFolder folder;
  ConvertResult result;

  Checkpoint run(const std::vector<SmallTensor>& tensors, const std::string& config) {
    write_file(folder / "in/model.safetensors", make_safetensors(tensors));
    if (!config.empty()) write_file(folder / "in/config.json", config);
    ConvertRequest request;
    request.names = NameStyle::kHf;
    request.write.existing = Existing::kReplace;
    result = convert_checkpoint(folder / "in", folder / "out", request);
    return open_checkpoint(folder / "out");
  }
};

const char* const kBertLm = R"({"model_type":"bert","architectures":["BertForMaskedLM"]})";
const char* const kBertBase = R"({"model_type":"bert","architectures":["BertModel"]})";
const std::vector<SmallTensor> kBare = {vector("embeddings.LayerNorm.beta", 1),
                                        vector("embeddings.LayerNorm.gamma", 2),
                                        vector("pooler.dense.bias", 3)};

TEST_CASE("gamma and beta of LayerNorm, and of nothing else, get their current names") {
  Hf hf;
  const Checkpoint out =
      hf.run({vector("bert.embeddings.LayerNorm.gamma", 1),
              vector("bert.embeddings.LayerNorm.beta", 2), vector("layer_scale.gamma", 3)},
             kBertLm);
  CHECK(names_of(out) == Names{"bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.bias",
                               "layer_scale.gamma"});
  CHECK(hf.result.renamed == 2);
  CHECK(hf.result.notes == Names{"1 unknown name for bert kept, the first 'layer_scale.gamma'"});
}

TEST_CASE("wrappers' prefixes go") {
  Hf hf;
  CHECK(names_of(hf.run({vector("_orig_mod.module.cls.predictions.bias", 1),
                         vector("module.bert.pooler.dense.bias", 1)},
                        kBertLm)) == Names{"bert.pooler.dense.bias", "cls.predictions.bias"});
  CHECK(hf.result.notes.empty());
  CHECK(contains(message_of([&] {
                   hf.run({vector("module.cls.predictions.bias", 1),
                           vector("cls.predictions.bias", 1)},
                          kBertLm);
                 }),
                 "would both be called 'cls.predictions.bias'"));
}

TEST_CASE("the base prefix comes if the architecture has it") {
  {
    Hf hf;
    CHECK(names_of(hf.run(kBare, kBertLm)) == Names{"bert.embeddings.LayerNorm.bias",
                                                    "bert.embeddings.LayerNorm.weight",
                                                    "bert.pooler.dense.bias"});
    CHECK(hf.result.notes.empty());
  }
  for (const char* config : {kBertBase, R"({"model_type":"bert"})"}) {
    Hf hf;
    CHECK(names_of(hf.run(kBare, config)) ==
          Names{"embeddings.LayerNorm.bias", "embeddings.LayerNorm.weight", "pooler.dense.bias"});
    CHECK(hf.result.notes.empty());
  }
  Hf hf;
  CHECK(names_of(hf.run(kBare, "")).front() == "embeddings.LayerNorm.bias");
  CHECK(contains(hf.result.notes.at(0), "no config.json"));
}

TEST_CASE("OpenAI's names of GPT-2 get the prefix, without a config too") {
  for (const char* config : {"", R"({"model_type":"gpt2","architectures":["GPT2LMHeadModel"]})"}) {
    Hf hf;
    const Checkpoint out = hf.run({matrix("h.0.attn.c_attn.weight", 2, 6), vector("ln_f.weight", 1),
                                   matrix("wte.weight", 5, 2)},
                                  config);
    CHECK(names_of(out) == Names{"transformer.h.0.attn.c_attn.weight", "transformer.ln_f.weight",
                                 "transformer.wte.weight"});
    CHECK(out.get("transformer.h.0.attn.c_attn.weight").shape == Shape{2, 6});
    CHECK(hf.result.notes.empty());
  }
  Hf hf;
  CHECK(names_of(hf.run({matrix("wte.weight", 5, 2)},
                        R"({"model_type":"gpt2","architectures":["GPT2Model"]})")) ==
        Names{"wte.weight"});
}

TEST_CASE("matrices of GPT-2 that lie as [out, in] are transposed") {
  Hf hf;
  const Checkpoint out = hf.run({matrix("module.transformer.h.0.attn.c_attn.weight", 6, 2),
                                 matrix("module.transformer.h.0.attn.c_proj.weight", 2, 2),
                                 matrix("module.transformer.h.0.mlp.c_fc.weight", 8, 2),
                                 matrix("module.transformer.wte.weight", 5, 2)},
                                R"({"model_type":"gpt2","architectures":["GPT2LMHeadModel"]})");
  CHECK(out.get("transformer.h.0.attn.c_attn.weight").shape == Shape{2, 6});
  CHECK(values_of(out, "transformer.h.0.attn.c_attn.weight") ==
        std::vector<double>{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
  CHECK(values_of(out, "transformer.h.0.attn.c_proj.weight") == std::vector<double>{0, 2, 1, 3});
  CHECK(out.get("transformer.h.0.mlp.c_fc.weight").shape == Shape{2, 8});
  CHECK(out.get("transformer.wte.weight").shape == Shape{5, 2});
  CHECK(values_of(out, "transformer.wte.weight")[1] == 1);
}

}  // namespace
}  // namespace masque::surgery
