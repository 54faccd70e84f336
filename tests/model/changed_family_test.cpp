// A family's checkpoint with changes is written and read back: the same design, the same bits.
#include "model/checkpoint/changed_family.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "model/checkpoint/starting_model.hpp"
#include "model/detector.hpp"
#include "model/variants.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using masque::test::TempFolder;

const std::vector<std::pair<std::string, std::function<void(Design&)>>>& changes() {
  static const std::vector<std::pair<std::string, std::function<void(Design&)>>> all = {
      {"causal", [](Design& d) { d.mask = DefaultMask::kCausal; }},
      {"normalizer", [](Design& d) { d.normalizer = "log_n(base=64)"; }},
      {"tta",
       [](Design& d) {
         // T-TA's own config.json leaves the token to the tokenizer.
         if (d.streams != Streams::kFixedKeys) d.mask_token_id = 4;
         d.mask = DefaultMask::kOthers;
         d.streams = Streams::kFixedKeys;
       }},
      {"position",
       [](Design& d) {
         d.position = PositionType::kNone;
         d.variants.position = "t5(buckets=8,max_distance=16)";
         d.variants.position_shared = true;
         d.attention_scale = 1;
       }},
      {"detector",
       [](Design& d) {
         d.mask_token_id = 4;
         d.variants.detector =
             DetectorDesign{.hidden_size = 8, .num_attention_heads = 1, .intermediate_size = 12};
       }},
      {"token types",
       [](Design& d) {
         if (d.type_vocab_size == 0) d.type_vocab_size = 2;
       }},
      {"discriminator",
       [](Design& d) {
         d.head = {.kind = HeadKind::kDiscriminator,
                   .transform = true,
                   .activation = d.activation,
                   .tied = false};
       }},
      {"energies", [](Design& d) { d.head = {.kind = HeadKind::kEnergy, .tied = false}; }},
  };
  return all;
}

/// The weights of a start, zeros where the changed plan has what it lacks.
ModelWeights<float> filled(const StartingModel& start, const ModelPlan& plan,
                           std::vector<std::vector<float>>& memory) {
  ModelWeights<float> weights = start.weights();
  // A discriminator has nothing of a vocabulary's head.
  if (plan.design.head.kind != start.design().head.kind && has_one_number(plan.design.head.kind)) {
    weights.head_transform = weights.decoder = {};
    weights.head_norm = {};
  }
  for (const PlacedTensor& tensor : placed_tensors(plan, head_like(plan, plan.design.head))) {
    for (const TensorPart& part : tensor.parts) {
      if (tensor.detector && weights.detector.empty()) {
        weights.detector.resize(1);
        weights.detector[0].layers.resize(
            static_cast<std::size_t>(plan.design.variants.detector->num_hidden_layers));
      }
      Weight<float>& weight = weight_of(network_of(weights, tensor.detector), part.role,
                                        tensor.bias, part.layer, part.part);
      const RoleShape shape = role_shape(
          tensor.detector ? detector_design(plan.design) : plan.design, part.role, part.part);
      if (weight) continue;
      const Index columns = tensor.bias && !is_norm(part.role) ? shape.rows : shape.columns;
      memory.emplace_back(static_cast<std::size_t>(shape.rows * columns), 0.25F);
      weight.view = {memory.back().data(), tensor.bias ? 1 : shape.rows, columns};
    }
  }
  return weights;
}

TEST_CASE("every family with every change is read back with its design and bits") {
  int written = 0;
  for (const auto& one : masque::test::model_cases()) {
    if (one.name == "tta_over_bert") continue;
    const StartingModel start(one.folder);
    for (const auto& [name, change] : changes()) {
      CAPTURE(one.name);
      CAPTURE(name);
      Design design = start.design();
      design.notes.clear();
      design.missing_head.clear();
      change(design);
      if (!can_change(start.design(), design)) continue;
      const ModelPlan plan = start.saved_design(design).plan;
      std::vector<std::vector<float>> memory;
      memory.reserve(1000);
      const ModelWeights<float> weights = filled(start, plan, memory);
      TempFolder folder = TempFolder::in_memory();
      save_model(folder / "changed", start.files(design, weights, {}));
      const LoadedModel<float> again = load_model<float>(folder / "changed");
      CHECK(same_design(again.design, design));
      ++written;
      if (start.saved_design(design).family != "masque") continue;
      const StartingModel next(folder / "changed");
      CHECK(next.writes(next.design()));
      ModelWeights<float> own = next.weights();
      for (const PlacedTensor& tensor : placed_tensors(plan, head_like(plan, plan.design.head))) {
        for (const TensorPart& part : tensor.parts) {
          ModelWeights<float> before = weights;
          const auto view = [&](ModelWeights<float>& of) {
            return weight_of(network_of(of, tensor.detector), part.role, tensor.bias, part.layer,
                             part.part)
                .view;
          };
          const auto from = view(before);
          const auto to = view(own);
          REQUIRE((from.rows == to.rows && from.columns == to.columns));
          bool same = true;
          for (Index i = 0; i < from.rows; ++i)
            same = same && std::equal(from.row(i), from.row(i) + from.columns, to.row(i));
          CHECK(same);
        }
      }
    }
  }
  CHECK(written > 150);
}

TEST_CASE("a changed family is changed again, back to its family's own keys") {
  for (const auto& one : masque::test::model_cases()) {
    if (one.name != "mpnet" && one.name != "xlnet" && one.name != "t5_encoder") continue;
    CAPTURE(one.name);
    const StartingModel start(one.folder);
    TempFolder folder = TempFolder::in_memory();
    std::string from = one.folder;
    std::vector<std::vector<float>> memory;
    memory.reserve(1000);
    // Each on top of those before.
    for (const auto& [name, change] : changes()) {
      CAPTURE(name);
      const StartingModel base(from);
      Design design = base.design();
      design.notes.clear();
      design.missing_head.clear();
      design.streams = Streams::kOne;
      design.mask = DefaultMask::kFull;
      change(design);
      if (!can_change(base.design(), design)) continue;
      const ModelPlan plan = base.saved_design(design).plan;
      const ModelWeights<float> weights = filled(base, plan, memory);
      from = folder / name;
      save_model(from, base.files(design, weights, {}));
      CHECK(same_design(load_model<float>(from).design, design));
      const store::ModelConfig config = store::ModelConfig::read(from + "/config.json");
      CHECK(config.string("base_model_type") == start.design().model_type);
    }
  }
}

TEST_CASE("what is no family or no change is refused by name") {
  const auto message = [](const std::string& text) {
    return masque::test::message_of(
        [&] { read_changed(FamilyConfig(store::ModelConfig::parse(text, "config.json"))); });
  };
  CHECK(!read_changed(FamilyConfig(store::ModelConfig::parse("{}", "config.json"))));
  CHECK(message(R"({"base_model_type":"nothing","changes":{}})") ==
        "config.json: base_model_type is \"nothing\", expected the model_type of another family");
  CHECK(message(R"({"base_model_type":"masque","changes":{}})") ==
        "config.json: base_model_type is \"masque\", expected the model_type of another family");
  CHECK(message(R"({"base_model_type":"t5"})").starts_with("config.json: changes is"));
  CHECK(message(R"({"base_model_type":"t5","changes":{"normalizer":"hard"}})")
            .starts_with("config.json: changes: no normalizer"));
  CHECK(message(R"({"base_model_type":"bert","changes":{"streams":"two"}})") ==
        "config.json: changes: the model cannot have these streams");
  CHECK(message(R"({"base_model_type":"t5","changes":{"position":"learned"}})") ==
        "config.json: changes: position learned: the model has no max_position_embeddings, "
        "expected positions without a table");
}

}  // namespace
}  // namespace masque::model
