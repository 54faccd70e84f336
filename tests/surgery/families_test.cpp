// Surgery on every family that loads: another number of tokens, an untied head, and the model
// loads again with just that.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/weights.hpp"
#include "store/checkpoint.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/edit/head.hpp"
#include "surgery/example.hpp"
#include "surgery/positions/resize_positions.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"

namespace masque::surgery {
namespace {

using model::HeadKind;
using model::load_model;
using test::contains;
using test::message_of;
using test::names_in;
using test::TempFolder;
using test::write_file;

const std::string kModels = MASQUE_TEST_DATA "/model";

bool is_vocabulary_head(const model::Design& design) {
  return design.head.kind == HeadKind::kMasked || design.head.kind == HeadKind::kCausal;
}

/// Empty if there is none.
std::vector<float> values(const model::Weight<float>& weight) {
  if (!weight) return {};
  return {weight.span().begin(), weight.span().end()};
}

TEST_CASE("a checkpoint of any family gets more rows and still loads, with what it had") {
  std::size_t families = 0;
  for (const std::string& name : names_in(kModels)) {
    if (name.ends_with(".md")) continue;
    CAPTURE(name);
    ++families;
    const std::string in = fmt::format("{}/{}", kModels, name);
    const TempFolder folder;
    const auto plan = [](const VocabularyState& state) { return plan_resize(state, 64, 1); };
    const VocabularyReport report = change_vocabulary(in, folder / "out", plan, {});
    CHECK_FALSE(report.family.empty());
    const auto before = load_model<float>(in);
    const auto after = load_model<float>(folder / "out");
    CHECK(after.design.vocab_size == 64);
    CHECK(after.design.head == before.design.head);
    CHECK(after.unused == before.unused);
    const std::span<const float> old = before.weights.word_table.span();
    const std::span<const float> words = after.weights.word_table.span();
    REQUIRE(words.size() > old.size());
    CHECK(std::ranges::equal(words.first(old.size()), old));
    const auto bias = values(after.weights.decoder.bias);
    if (is_vocabulary_head(after.design)) CHECK((bias.empty() || bias.size() == 64));
  }
  CHECK(families >= 47);
}

TEST_CASE("the head of any family is untied into a copy, where the family can say so") {
  std::size_t untied = 0;
  std::size_t refused = 0;
  for (const std::string& name : names_in(kModels)) {
    if (name.ends_with(".md")) continue;
    CAPTURE(name);
    const std::string in = fmt::format("{}/{}", kModels, name);
    const auto before = load_model<float>(in);
    const TempFolder folder;
    if (name == "t5_full" || name == "deberta_v3") {
      CHECK(contains(message_of([&] { untie_checkpoint(in, folder / "out", {}); }),
                     "cannot be untied in this layout"));
      CHECK(folder.names().empty());
      ++refused;
      continue;
    }
    if (!is_vocabulary_head(before.design) || !before.design.head.tied) continue;
    untie_checkpoint(in, folder / "out", {});
    const auto after = load_model<float>(folder / "out");
    CHECK_FALSE(after.design.head.tied);
    CHECK(after.unused == before.unused);
    CHECK(values(after.weights.decoder.weight) == values(after.weights.word_table));
    CHECK(values(after.weights.decoder.bias) == values(before.weights.decoder.bias));
    ++untied;
  }
  CHECK(untied >= 20);
  CHECK(refused == 2);
}

/// A copy of a test model with tensors under other names, or twice.
void copy_renamed(const std::string& model, const std::string& to, const std::string& from_name,
                  const std::vector<std::string>& names) {
  const std::string in = fmt::format("{}/{}", kModels, model);
  const store::Checkpoint checkpoint = store::open_checkpoint(in);
  std::vector<ExampleTensor> tensors;
  for (const store::TensorInfo& info : checkpoint.tensors()) {
    if (info.dtype != DType::kF32) continue;  // a buffer
    std::vector<float> stored(info.elements());
    checkpoint.read(info, 0, std::as_writable_bytes(std::span(stored)));
    const std::vector<double> values(stored.begin(), stored.end());
    if (info.name != from_name) {
      tensors.push_back({info.name, info.dtype, info.shape, values});
      continue;
    }
    for (const std::string& name : names) tensors.push_back({name, info.dtype, info.shape, values});
  }
  std::filesystem::create_directory(to);
  write_file(to + "/model.safetensors", example_file(tensors));
  write_file(to + "/config.json", test::read_file(in + "/config.json"));
}

TEST_CASE("a second spelling of a table or a decoder is the one that counts where it is stored") {
  struct Case {
    const char* model;
    const char* from;
    const char* to;
  };
  for (const Case& c : {Case{"gpt_neox", "embed_out.weight", "lm_head.weight"},
                        {"t5_full", "shared.weight", "encoder.embed_tokens.weight"}}) {
    CAPTURE(c.model);
    const TempFolder folder;
    copy_renamed(c.model, folder / "in", c.from, {c.to});
    const auto plan = [](const VocabularyState& state) { return plan_resize(state, 64, 1); };
    change_vocabulary(folder / "in", folder / "out", plan, {});
    CHECK(load_model<float>(folder / "out").design.vocab_size == 64);
  }
}

TEST_CASE("T5's table that is stored twice is resized in both places, and never changed in one") {
  const TempFolder folder;
  copy_renamed("t5_full", folder / "in", "shared.weight",
               {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight", "shared.weight"});
  const auto plan = [](const VocabularyState& state) { return plan_resize(state, 64, 1); };
  const VocabularyReport report = change_vocabulary(folder / "in", folder / "out", plan, {});
  CHECK(report.changed_tensors.size() == 3);
  CHECK(load_model<float>(folder / "out").design.vocab_size == 64);
  CorrectionRequest request;
  request.tied = TiedPolicy::kKeep;
  request.mask_token = "4";
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "in", folder / "no", request); }),
                 "store the same embedding"));
}

TEST_CASE("of the family masque config.json says whether there is a head, and whether it is tied") {
  struct Case {
    const char* config;
    HeadState state;
  };
  for (const Case& c :
       {Case{R"({"model_type":"masque","head":"causal","head_transform":false})", HeadState::kTied},
        {R"({"model_type":"masque","head":"none"})", HeadState::kNone},
        {R"({"model_type":"masque","head":"discriminator"})", HeadState::kNone},
        {R"({"model_type":"masque","base_model_type":"gpt2","changes":{"head":"masked"}})",
         HeadState::kTied}}) {
    CAPTURE(c.config);
    const TempFolder folder;
    const bool own = std::string_view(c.config).find("gpt2") == std::string_view::npos;
    write_file(folder / "one.safetensors",
               example_file({{own ? "embeddings.word.weight" : "transformer.wte.weight",
                              DType::kF32,
                              {4, 2},
                              numbers(1, 8)}}));
    const auto config = store::ModelConfig::parse(c.config, "config.json");
    const store::Checkpoint checkpoint = store::open_checkpoint(folder / "one.safetensors");
    const EmbeddingTable table = find_embedding_table(checkpoint, config, std::nullopt);
    REQUIRE(table.family != nullptr);
    CHECK(table.head == c.state);
  }
}

TEST_CASE("the number of positions in config.json counts as before: rows, or positions alone") {
  for (const char* name : {"bert", "roberta", "mpnet", "esm_absolute", "opt", "opt_narrow",
                           "longformer", "big_bird", "gpt2", "electra_generator"}) {
    CAPTURE(name);
    const TempFolder folder;
    PositionsRequest request;
    request.positions = 33;
    request.how = "last";
    const std::string out = folder / "out";
    resize_positions(fmt::format("{}/{}", kModels, name), out, request);
    CHECK(load_model<float>(out).design.max_position_embeddings == 33);
  }
}

TEST_CASE("a model without a table of positions says so") {
  const TempFolder folder;
  PositionsRequest request;
  request.positions = 30;
  request.how = "hierarchical";
  for (const char* model : {"deberta_v3", "t5_full", "llama"}) {
    const std::string in = fmt::format("{}/{}", kModels, model);
    CHECK(contains(message_of([&] { resize_positions(in, folder / "out", request); }),
                   "has no table of positions"));
  }
}

TEST_CASE("Llama's head is its own unless the config ties it") {
  for (const char* tied : {"", ",\"tie_word_embeddings\":true"}) {
    CAPTURE(tied);
    const auto config = store::ModelConfig::parse(
        std::string(R"({"model_type":"llama","architectures":["LlamaForCausalLM"])") + tied + "}",
        "config.json");
    const store::Checkpoint checkpoint = store::open_checkpoint(std::string(kModels) + "/llama");
    const EmbeddingTable table = find_embedding_table(checkpoint, config, std::nullopt);
    REQUIRE(table.family != nullptr);
    CHECK(table.family->name == "llama");
    CHECK(table.config_tied == (tied[0] != '\0'));
    CHECK(table.decoder_weight == "lm_head.weight");
  }
}

}  // namespace
}  // namespace masque::surgery
