#include "surgery/rows/embedding_table.hpp"

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

/// The table of an example folder; the checkpoint must outlive what is looked at.
struct Found {
  explicit Found(const std::string& path, std::optional<std::string> tensor = {})
      : checkpoint(store::open_checkpoint(path)),
        config(store::ModelConfig::find(checkpoint.folder())),
        table(find_embedding_table(checkpoint, config, tensor)) {}
  store::Checkpoint checkpoint;
  std::optional<store::ModelConfig> config;
  EmbeddingTable table;
};

TEST_CASE("the head's state follows from what is stored and what the config says") {
  struct Case {
    const char* name;
    bool head;
    bool decoder;
    bool equal;
    const char* tied;
    HeadState state;
  };
  for (const Case& c :
       {Case{"no head", false, false, true, "true", HeadState::kNone},
        {"tied", true, false, true, "true", HeadState::kTied},
        {"stored twice", true, true, true, "true", HeadState::kCopy},
        {"stored, other values", true, true, false, "true", HeadState::kOwn},
        {"untied", true, true, true, "false", HeadState::kOwn},
        {"untied without matrix", true, false, true, "false", HeadState::kMissing}}) {
    CAPTURE(c.name);
    const TempFolder folder;
    ExampleBert bert;
    bert.head = c.head;
    bert.decoder = c.decoder;
    bert.decoder_equal = c.equal;
    bert.config = std::string("{\"model_type\":\"bert\",\"tie_word_embeddings\":") + c.tied + "}";
    bert.write(folder);
    const Found found(folder / "in");
    CHECK(found.table.head == c.state);
    CHECK(found.table.input->name == kTable);
    CHECK(found.table.family->name == "bert");
  }
}

TEST_CASE("an absent tie_word_embeddings means tied") {
  const TempFolder folder;
  ExampleBert bert;
  bert.config = "{\"model_type\":\"bert\"}";
  bert.write(folder);
  CHECK(Found(folder / "in").table.head == HeadState::kTied);
}

TEST_CASE("without a config the names tell the family") {
  REQUIRE(model::family_names().size() > 10);
  for (const model::FamilyNames& family : model::family_names()) {
    if (family.prefix.empty()) continue;  // anyone has such names
    CAPTURE(family.name);
    const TempFolder folder;
    const std::string name = model::with_prefix(family.input_table, family.prefix);
    std::vector<ExampleTensor> tensors = {{name, DType::kF32, {4, 2}, numbers(1, 8)}};
    // Tensors of its first layer tell it from others with the same table.
    for (std::string layer : family.tensors) {
      const std::size_t begin = layer.find('{');
      if (!layer.starts_with('~') || begin == std::string::npos) continue;
      layer.replace(begin, layer.find('}') + 1 - begin, "0");
      if (layer.ends_with('*')) layer.replace(layer.size() - 1, 1, "weight");
      const std::string own = model::with_prefix(layer, family.prefix);
      tensors.push_back({own, DType::kF32, {2}, numbers(1, 2)});
    }
    write_file(folder / "headless.safetensors", example_file(tensors));
    const Found headless(folder / "headless.safetensors");
    CHECK(headless.table.family == &family);
    // A tied GPT-2 head leaves no trace in the weights: without a class name it cannot be
    // determined.
    const bool telling = !family.head_evidence.empty();
    CHECK(headless.table.head == (telling ? HeadState::kNone : HeadState::kUnknown));
    if (!telling) continue;
    tensors.push_back({std::string(family.head_evidence[0]), DType::kF32, {4}, numbers(2, 4)});
    write_file(folder / "tied.safetensors", example_file(tensors));
    const Found tied(folder / "tied.safetensors");
    CHECK(tied.table.head == HeadState::kTied);
    CHECK(tied.table.decoder_weight == family.decoder_weight);
  }
}

TEST_CASE("a headless export without prefix has a table and no head") {
  const TempFolder folder;
  write_file(
      folder / "a.safetensors",
      example_file({{"embeddings.word_embeddings.weight", DType::kF32, {4, 2}, numbers(1, 8)}}));
  const Found found(folder / "a.safetensors");
  CHECK(found.table.head == HeadState::kNone);
  CHECK(found.table.rows() == 4);
}

TEST_CASE("GPT-2's head is known by its class, with or without the prefix") {
  const TempFolder folder;
  for (const char* name : {"wte.weight", "transformer.wte.weight"}) {
    CAPTURE(name);
    write_file(folder / "in/model.safetensors",
               example_file({{name, DType::kF32, {4, 2}, numbers(1, 8)}}));
    write_file(folder / "in/config.json",
               R"({"model_type":"gpt2","architectures":["GPT2LMHeadModel"]})");
    CHECK(Found(folder / "in").table.head == HeadState::kTied);
    write_file(folder / "in/config.json", R"({"model_type":"gpt2","architectures":["GPT2Model"]})");
    CHECK(Found(folder / "in").table.head == HeadState::kNone);
  }
}

TEST_CASE("--tensor names any table, the family's own keeps its head") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder);
  CHECK(Found(folder / "in", kTable).table.head == HeadState::kTied);
  auto tensors = bert.tensors();
  tensors.push_back({"my.table", DType::kF16, {3, 2}, numbers(5, 6)});
  write_file(folder / "in/model.safetensors", example_file(tensors));
  const Found found(folder / "in", "my.table");
  CHECK(found.table.head == HeadState::kUnknown);
  CHECK(found.table.rows() == 3);
}

TEST_CASE("what is no table of numbers is refused") {
  const TempFolder folder;
  const auto message = [&](const ExampleTensor& tensor, std::optional<std::string> name) {
    write_file(folder / "a.safetensors", example_file({tensor}));
    return message_of([&] { Found(folder / "a.safetensors", name); });
  };
  CHECK(contains(message({"x", DType::kF32, {4, 2}, numbers(1, 8)}, {}), "name it with tensor"));
  CHECK(contains(message({"x", DType::kF32, {8}, numbers(1, 8)}, "x"), "expected a table of two"));
  CHECK(contains(message({"x", DType::kF8E4M3, {4, 2}, numbers(1, 8)}, "x"), "expected F16, BF16"));
  CHECK(contains(message({"xyzzy", DType::kF32, {4, 2}, numbers(1, 8)}, "xyzzzy"),
                 "did you mean 'xyzzy'"));
}

TEST_CASE("roles: what is stored, tied or missing") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const Found found(folder / "in");
  std::string all;
  for (const TableRole& role : table_roles(found.table)) {
    all += std::string(role.role) + " " + role.name + " " + role.state + "\n";
  }
  CHECK(all ==
        "input bert.embeddings.word_embeddings.weight stored\n"
        "position bert.embeddings.position_embeddings.weight missing\n"
        "segment bert.embeddings.token_type_embeddings.weight missing\n"
        "decoder cls.predictions.decoder.weight tied\n"
        "output_bias cls.predictions.bias stored\n"
        "output_bias cls.predictions.decoder.bias tied\n");
}

}  // namespace
}  // namespace masque::surgery
