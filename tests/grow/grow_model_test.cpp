// Larger models of every family compute what the small ones do, or say why there is none.
#include "grow/grow_model.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "grow/compare_models.hpp"
#include "model/model.hpp"
#include "store/checkpoint.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::grow {
namespace {

using test::message_of;
using test::ModelCase;
using test::TempFolder;

const char* const kNoWeights =
    "cannot make this model wider: the tied vocabulary reads a norm without weights, which cannot "
    "be divided; expected an untied one";
const char* const kOffset =
    "cannot make this model wider: the tied vocabulary reads a norm whose weights are stored less "
    "a "
    "number, which cannot be divided; expected an untied one";
const char* const kHeadNorms =
    "cannot make this model wider: norms of queries and keys have a tensor for each head";
const char* const kOneKey =
    "cannot make this model wider: the config of family falcon says 1 heads of keys and values, 2 "
    "would be needed";
const char* const kRootOfWidth =
    "cannot make this model wider: family llada multiplies embeddings by the root of hidden_size, "
    "which the width changes";
const char* const kGroups =
    "cannot make this model wider: its queries are stored in groups with a key and a value";
const char* const kAlibi =
    "cannot make this model wider: position alibi has terms for each head or column; expected one "
    "that depends only on queries and keys, like rope";
const char* const kRoot =
    "cannot make this model wider: family big_bird multiplies embeddings by the root of "
    "hidden_size, which the width changes";
const char* const kMixer = "cannot make this model wider: mixer fnet, expected attention";
const char* const kFalconAlibi =
    "cannot make this model wider: position alibi(bf16=true) has terms for each head or column; "
    "expected one that depends only on queries and keys, like rope";
const char* const kXlnet =
    "cannot make this model wider: XLNet's relative positions cannot be copied to another width";

const char* const kExperts =
    "cannot make this model wider: mixtures of experts, expected feed-forward layers";

/// What has no wider model, and why.
const std::map<std::string, std::string>& refused() {
  static const std::map<std::string, std::string> kRefused = {{"gau_alpha", kNoWeights},
                                                              {"gau_alpha_softmax", kNoWeights},
                                                              {"roformer_v2", kNoWeights},
                                                              {"xlnet", kXlnet},
                                                              {"xlnet_two_streams", kXlnet},
                                                              {"xlnet_uni", kXlnet},
                                                              {"xlnet_epsilon", kXlnet},
                                                              {"gemma", kOffset},
                                                              {"gemma2", kOffset},
                                                              {"gemma2_open", kOffset},
                                                              {"gemma3", kOffset},
                                                              {"gemma3_hub", kOffset},
                                                              {"stablelm", kHeadNorms},
                                                              {"llada_bias", kRootOfWidth},
                                                              {"llada_tied", kOffset},
                                                              {"falcon", kOneKey},
                                                              {"falcon_groups", kGroups},
                                                              {"falcon_one_norm", kGroups},
                                                              {"mixtral", kExperts},
                                                              {"qwen2_moe", kExperts},
                                                              {"qwen2_moe_windows", kExperts},
                                                              {"qwen3_moe", kExperts},
                                                              {"qwen3_moe_windows", kExperts},
                                                              {"olmoe", kExperts},
                                                              {"olmoe_normalized", kExperts},
                                                              {"gpt_oss", kExperts},
                                                              {"gpt_oss_plain", kExperts},
                                                              {"bloom", kAlibi},
                                                              {"mpt", kAlibi},
                                                              {"mpt_plain", kAlibi},
                                                              {"falcon_rw", kFalconAlibi},
                                                              {"big_bird_full", kRoot},
                                                              {"fnet", kMixer},
                                                              {"fnet_headless", kMixer}};
  return kRefused;
}

GrowthReport grow(const std::string& in, const std::string& out, const GrowthRequest& request) {
  ModelGrowth growth(in, request);
  growth.write(out, {});
  return growth.report();
}

std::unique_ptr<model::Model> open(const std::string& path) {
  return model::open_model(path,
                           {.precision = kernel::Precision::kF64, .mask_token_id = TokenId{4}});
}

ModelDifference difference(const ModelCase& one, const std::string& other) {
  const std::unique_ptr<model::Model> first = open(one.folder);
  const std::unique_ptr<model::Model> second = open(other);
  ModelComparison comparison({*first}, {*second});
  for (const test::ModelLine& line : one.lines) comparison.add(line.ids, line.segments);
  return comparison.result();
}

ModelCase case_of(const std::string& name) {
  for (const ModelCase& one : test::model_cases())
    if (one.name == name) return one;
  FAIL("no model ", name);
  return {};
}

}  // namespace

TEST_CASE("a wider model of every family gives the same logits and states") {
  int compared = 0;
  for (const ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    const TempFolder folder;
    const std::string wide = folder / "wide";
    if (const auto why = refused().find(one.name); why != refused().end()) {
      CHECK(message_of<UsageError>([&] { grow(one.folder, wide, {.factor = 2}); }) == why->second);
      continue;
    }
    const GrowthReport report = grow(one.folder, wide, {.factor = 2});
    CHECK(report.sameness == Sameness::kExact);
    CHECK(report.after.hidden_size == 2 * report.before.hidden_size);
    const ModelDifference found = difference(one, wide);
    CHECK(found.tokens > 0);
    CHECK(found.logits.value_or(0) <= 1e-14 * std::max(1.0, found.largest_logit));
    REQUIRE(found.states);
    CHECK(*found.states <= 1e-14 * std::max(1.0, found.largest_state));
    CHECK(found.largest_state > 0.5);
    ++compared;
  }
  CHECK(compared >= 40);
}

TEST_CASE("three copies, and copies with unequal shares, differ by the rounding of floats") {
  for (const char* name : {"bert", "albert_groups", "llama", "gpt2", "deberta_v2_conv", "tta"}) {
    CAPTURE(name);
    const ModelCase one = case_of(name);
    for (const GrowthRequest& request : {GrowthRequest{.factor = 3},
                                         {.factor = 2, .width = WidthRule::kUnequal, .seed = 1},
                                         {.factor = 3, .width = WidthRule::kUnequal, .seed = 1}}) {
      const TempFolder folder;
      CHECK(grow(one.folder, folder / "wide", request).sameness == Sameness::kRounded);
      const ModelDifference found = difference(one, folder / "wide");
      const double logits = found.logits.value_or(0);
      CHECK(logits > 1e-12);
      CHECK(logits <= 3e-6 * std::max(1.0, found.largest_logit));
      CHECK(found.states.value_or(1) <= 3e-6 * std::max(1.0, found.largest_state));
    }
  }
}

TEST_CASE("fpi with a whole factor is equal, copies of the next layer are another function") {
  const ModelCase one = case_of("bert");
  const TempFolder folder;
  CHECK(grow(one.folder, folder / "fpi", {.factor = 2, .width = WidthRule::kFpi}).sameness ==
        Sameness::kExact);
  grow(one.folder, folder / "equal", {.factor = 2});
  CHECK(test::read_file(folder / "fpi/model.safetensors") ==
        test::read_file(folder / "equal/model.safetensors"));
  CHECK(grow(one.folder, folder / "aki", {.factor = 2, .width = WidthRule::kAki}).sameness ==
        Sameness::kOther);
  CHECK(difference(one, folder / "aki").logits.value_or(0) > 1e-3);
  CHECK(message_of<UsageError>([&] { grow(one.folder, folder / "none", {.factor = 1.5}); }) ==
        "factor 1.5, expected a whole number above 1");
}

TEST_CASE("weights that are not finite are refused, and nothing is written") {
  const TempFolder folder;
  std::filesystem::copy(case_of("gpt2").folder, folder / "gpt2");
  const std::string file = folder / "gpt2/model.safetensors";
  std::string bytes = test::read_file(file);
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xC0\x7F", 4));  // NaN
  test::write_file(file, bytes);
  for (const GrowthRequest& request : {GrowthRequest{.factor = 2}, {.layers = 5}}) {
    CHECK(message_of<InputError>([&] { grow(folder / "gpt2", folder / "out", request); }) ==
          folder / "gpt2" +
              ": transformer.wte.weight: 1 of 1080 elements are not finite, expected finite "
              "numbers");
    CHECK(!std::filesystem::exists(folder / "out"));
  }
}

TEST_CASE("the size that sentence-transformers pools follows the width") {
  const TempFolder folder;
  std::filesystem::copy(case_of("bert").folder, folder / "bert");
  std::filesystem::create_directory(folder / "bert/1_Pooling");
  const std::string name = "1_Pooling/config.json";
  test::write_file(folder / "bert/" + name,
                   R"({"word_embedding_dimension": 24, "pooling_mode_cls_token": true})");
  grow(folder / "bert", folder / "wide", {.factor = 2});
  CHECK(test::read_file(folder / "wide/" + name) ==
        R"({"word_embedding_dimension": 48, "pooling_mode_cls_token": true})");
  test::write_file(folder / "bert/" + name, R"({"word_embedding_dimension": 7})");
  grow(folder / "bert", folder / "other", {.factor = 2});
  CHECK(test::read_file(folder / "other/" + name) == R"({"word_embedding_dimension": 7})");
}

TEST_CASE("shares are drawn from the seed, and other models are other models") {
  const ModelCase one = case_of("bert");
  const TempFolder folder;
  const auto grown = [&](const char* name, std::uint64_t seed) {
    grow(one.folder, folder / name, {.factor = 2, .width = WidthRule::kUnequal, .seed = seed});
    return test::read_file(folder / name + "/model.safetensors");
  };
  const std::string first = grown("a", 1);
  CHECK(first == grown("b", 1));
  CHECK(first != grown("c", 2));
  const ModelDifference found = difference(one, case_of("bert_gelu_new").folder);
  CHECK(found.logits.value_or(0) > 0.1);
  const std::unique_ptr<model::Model> bert = open(one.folder);
  const std::unique_ptr<model::Model> bare = open(case_of("bert_headless").folder);
  CHECK_THROWS_AS(ModelComparison({*bert}, {*bare}), UsageError);
}

namespace {

/// What cannot get layers that add nothing by a rule, and why.
std::string refused_depth(const std::string& name, DepthRule rule) {
  if (name.starts_with("albert"))
    return "cannot make this model deeper: layers share their weights, so added layers change the "
           "outputs; expected the rule interleave or stack";
  if (name.starts_with("fnet"))
    return "cannot make this model deeper: its layers mix tokens (fnet) without weights that could "
           "be 0, so added layers change the outputs; expected the rule interleave or stack";
  if (rule == DepthRule::kIdentity && name == "gpt2_layer_scale")
    return "which has another window or scale of scores; expected the rule zero or stack";
  return {};
}

}  // namespace

TEST_CASE("layers that add nothing leave every model's function as it is") {
  int exact = 0;
  int up_to_epsilon = 0;
  for (const ModelCase& one : test::model_cases()) {
    for (const DepthRule rule : {DepthRule::kIdentity, DepthRule::kZero}) {
      CAPTURE(one.name);
      CAPTURE(name_in(depth_rules(), rule));
      const TempFolder folder;
      const std::string deep = folder / "deep";
      const Index layers = open(one.folder)->design().num_hidden_layers;
      for (const Index more : {Index{1}, layers + 1}) {
        const GrowthRequest request{.layers = layers + more, .depth = rule};
        if (const std::string why = refused_depth(one.name, rule); !why.empty()) {
          CHECK(message_of<UsageError>([&] { grow(one.folder, deep, request); }).ends_with(why));
          continue;
        }
        const std::string out = folder / std::to_string(more);
        const GrowthReport report = grow(one.folder, out, request);
        CHECK(report.after.num_hidden_layers == layers + more);
        CHECK(report.added > 0);
        const ModelDifference found = difference(one, out);
        CHECK(found.tokens > 0);
        const double largest = std::max({1.0, found.largest_logit, found.largest_state});
        const double most = std::max(found.logits.value_or(0), found.states.value_or(0));
        CHECK((found.logits || found.states));
        if (report.sameness == Sameness::kExact) {
          CHECK(most == 0);
          ++exact;
        } else {
          CHECK(report.sameness == Sameness::kEpsilon);
          CHECK(most <= 20 * report.before.norm.epsilon * largest);
          ++up_to_epsilon;
        }
      }
    }
  }
  CHECK(exact >= 20);
  CHECK(up_to_epsilon >= 20);
}

TEST_CASE("width and depth in one pass are the two after each other") {
  int compared = 0;
  for (const ModelCase& one : test::model_cases()) {
    if (refused().contains(one.name) || one.name.starts_with("albert")) continue;
    CAPTURE(one.name);
    const TempFolder folder;
    const Index layers = 2 * open(one.folder)->design().num_hidden_layers;
    const DepthRule rule = DepthRule::kZero;
    const GrowthReport report =
        grow(one.folder, folder / "both", {.factor = 2, .layers = layers, .depth = rule});
    grow(one.folder, folder / "wide", {.factor = 2});
    grow(folder / "wide", folder / "after", {.layers = layers, .depth = rule});
    const ModelCase both{one.name, folder / "both", one.lines};
    const ModelDifference apart = difference(both, folder / "after");
    CHECK(apart.logits.value_or(0) == 0);
    CHECK(apart.states.value_or(0) == 0);
    CHECK(test::read_file(folder / "both/config.json") ==
          test::read_file(folder / "after/config.json"));
    const ModelDifference found = difference(one, folder / "both");
    const double bound =
        report.sameness == Sameness::kExact ? 1e-14 : 20 * report.before.norm.epsilon;
    CHECK(found.logits.value_or(0) <= bound * std::max(1.0, found.largest_logit));
    ++compared;
  }
  CHECK(compared >= 35);
}

TEST_CASE("copies of layers are another function, of the layers in the order of the rule") {
  for (const char* name : {"bert", "gpt2", "albert", "deberta_v2_conv", "modernbert", "t5_gated"}) {
    CAPTURE(name);
    const ModelCase one = case_of(name);
    const Index layers = open(one.folder)->design().num_hidden_layers;
    for (const DepthRule rule : {DepthRule::kInterleave, DepthRule::kStack}) {
      const TempFolder folder;
      const GrowthReport report =
          grow(one.folder, folder / "deep", {.layers = 2 * layers, .depth = rule});
      CHECK(report.sameness == Sameness::kOther);
      CHECK(difference(one, folder / "deep").logits.value_or(1) > 1e-3);
    }
  }
  const model::Design bert = open(case_of("bert").folder)->design();
  const auto from = [&](Index layers, DepthRule rule) {
    std::string text;
    for (const LayerCopy& copy : deeper_layers(bert, layers, rule))
      text += std::to_string(copy.from) + (copy.added ? "+ " : " ");
    return text;
  };
  REQUIRE(bert.num_hidden_layers == 2);
  CHECK(from(5, DepthRule::kInterleave) == "0 0+ 0+ 1 1+ ");
  CHECK(from(5, DepthRule::kIdentity) == "0 0+ 0+ 1 1+ ");
  CHECK(from(5, DepthRule::kStack) == "0 1 0+ 1+ 0+ ");
  CHECK(message_of<UsageError>([&] { deeper_layers(bert, 2, DepthRule::kStack); }) ==
        "layers 2, expected more than the model's 2");
}

TEST_CASE("noise is on added layers, where the depth grows, and on all, where the width does") {
  const ModelCase one = case_of("gpt2");
  const TempFolder folder;
  CHECK(grow(one.folder, folder / "deep", {.layers = 4, .noise = 0.1, .seed = 1}).sameness ==
        Sameness::kExact);
  CHECK(difference(one, folder / "deep").logits.value_or(1) == 0);
  grow(one.folder, folder / "quiet", {.layers = 4});
  CHECK(test::read_file(folder / "deep/model.safetensors") !=
        test::read_file(folder / "quiet/model.safetensors"));
  CHECK(grow(one.folder, folder / "wide", {.factor = 2, .noise = 0.01, .seed = 1}).sameness ==
        Sameness::kOther);
  const ModelDifference found = difference(one, folder / "wide");
  CHECK(found.logits.value_or(0) > 1e-4);
  CHECK(found.logits.value_or(1) < 0.3 * found.largest_logit);
}

TEST_CASE("noise of a deeper model is on its added layers alone, whatever the family") {
  for (const ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    const TempFolder folder;
    const Index layers = open(one.folder)->design().num_hidden_layers;
    const GrowthRequest request{.layers = layers + 2, .depth = DepthRule::kZero, .noise = 0.2};
    if (one.name == "albert_groups" || one.name == "albert_inner") continue;
    if (one.name.starts_with("fnet")) continue;  // refused
    if (one.name == "albert") {
      CHECK(message_of<UsageError>([&] {
              grow(one.folder, folder / "deep",
                   {.layers = 2 * layers, .depth = DepthRule::kStack, .noise = 0.2});
            }) == "noise on added layers is not supported where layers share their weights");
      continue;
    }
    const GrowthReport report = grow(one.folder, folder / "deep", request);
    CHECK(report.sameness != Sameness::kOther);
    const ModelDifference found = difference(one, folder / "deep");
    const double most = std::max(found.logits.value_or(0), found.states.value_or(0));
    CHECK(most <= 100 * report.before.norm.epsilon);
  }
}

TEST_CASE("copies of a stack are its layers, tensor by tensor") {
  const ModelCase one = case_of("bert");
  const TempFolder folder;
  grow(one.folder, folder / "deep", {.layers = 5, .depth = DepthRule::kStack});
  const store::Checkpoint small = store::open_checkpoint(one.folder);
  const store::Checkpoint deep = store::open_checkpoint(folder / "deep");
  int compared = 0;
  for (const store::TensorInfo& tensor : deep.tensors()) {
    const std::string begin = "bert.encoder.layer.";
    if (!tensor.name.starts_with(begin)) continue;
    const int layer = tensor.name[begin.size()] - '0';
    const std::string from =
        begin + std::to_string(layer % 2) + tensor.name.substr(begin.size() + 1);
    std::vector<std::byte> own(tensor.elements() * 4);
    std::vector<std::byte> expected(own.size());
    deep.read(tensor, 0, own);
    small.read(small.get(from), 0, expected);
    CHECK(own == expected);
    ++compared;
  }
  CHECK(compared == 5 * 16);
}

TEST_CASE("factors that leave the width, and lists of another length, are refused") {
  const ModelCase one = case_of("bert");
  const TempFolder folder;
  CHECK(message_of<UsageError>([&] {
          grow(one.folder, folder / "x", {.factor = 1.0000000001, .width = WidthRule::kFpi});
        }).ends_with("does not change the width, expected more"));
  CHECK(message_of<UsageError>([&] { grow(one.folder, folder / "x", {.factor = 0.5}); }) ==
        "factor 0.5, expected a whole number above 1");
  std::string config = test::read_file(one.folder + "/config.json");
  config.insert(config.find('{') + 1, R"("layer_types": ["full_attention"],)");
  test::write_file(folder / "bert/config.json", config);
  test::write_file(folder / "bert/model.safetensors",
                   test::read_file(one.folder + "/model.safetensors"));
  CHECK(message_of<InputError>([&] {
          grow(folder / "bert", folder / "x", {.layers = 3});
        }).ends_with("layer_types: 1 items, expected 2"));
}

}  // namespace masque::grow
