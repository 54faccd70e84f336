// What training starts from is written back as it was: names, bytes, config.json.
#include "model/checkpoint/starting_model.hpp"

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "store/checkpoint.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"
#include "tensor/convert.hpp"

namespace masque::model {
namespace {

using masque::test::TempFolder;

std::vector<std::byte> bytes_of(const store::Checkpoint& checkpoint,
                                const store::TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  checkpoint.read(tensor, 0, bytes);
  return bytes;
}

std::set<std::string> names_of(const store::Checkpoint& checkpoint) {
  std::set<std::string> names;
  for (const store::TensorInfo& tensor : checkpoint.tensors()) names.insert(tensor.name);
  return names;
}

TEST_CASE("every family is written back bit for bit under its own names") {
  std::set<std::string> families;
  for (const auto& one : masque::test::model_cases()) {
    if (one.name == "tta_over_bert") continue;  // one of --family
    CAPTURE(one.name);
    const StartingModel start(one.folder);
    REQUIRE(start.writes(start.design()));
    families.insert(start.design().family);
    TempFolder folder = TempFolder::in_memory();
    save_model(folder / "again", start.files(start.design(), start.weights(), {}));
    const store::Checkpoint before = store::open_checkpoint(one.folder);
    const store::Checkpoint after = store::open_checkpoint(folder / "again");
    CHECK(names_of(after) == names_of(before));
    for (const store::TensorInfo& tensor : before.tensors()) {
      CAPTURE(tensor.name);
      const store::TensorInfo& other = after.get(tensor.name);
      CHECK(other.shape == tensor.shape);
      if (tensor.dtype == other.dtype) CHECK(bytes_of(before, tensor) == bytes_of(after, other));
    }
    const LoadedModel<float> again = load_model<float>(folder / "again");
    CHECK(same_design(again.design, start.design()));
    CHECK(again.design.family == start.design().family);
  }
  CHECK(families.size() >= 16);
}

TEST_CASE("a new head has its family's names, and the class that reads it") {
  const StartingModel start(MASQUE_TEST_DATA "/model/bert_headless");
  REQUIRE(start.design().head.kind == HeadKind::kNone);
  Design design = start.design();
  design.head = start.head(HeadKind::kMasked).value();
  REQUIRE(start.writes(design));
  CHECK(start.saved_design(design).plan.design.head == design.head);
  CHECK_FALSE(start.head(HeadKind::kDiscriminator));
}

TEST_CASE("a model that loses its head is read without one, whatever the file had") {
  int lost = 0;
  for (const auto& one : masque::test::model_cases()) {
    if (one.name == "tta_over_bert") continue;
    CAPTURE(one.name);
    const StartingModel start(one.folder);
    if (start.design().head.kind == HeadKind::kNone) continue;
    Design design = start.design();
    design.head = {};
    TempFolder folder = TempFolder::in_memory();
    save_model(folder / "encoder", start.files(design, start.weights(), {}));
    CHECK(same_design(load_model<float>(folder / "encoder").design, design));
    ++lost;
  }
  CHECK(lost >= 20);
}

TEST_CASE("a discriminator of ELECTRA's generator is read as one") {
  const StartingModel start(MASQUE_TEST_DATA "/model/electra_generator");
  Design design = start.design();
  design.head = start.head(HeadKind::kDiscriminator).value();
  REQUIRE(start.writes(design));
  ModelWeights<float> weights = start.weights();
  const std::vector<float> zeros(24 * 24);
  weights.head_transform = {{{zeros.data(), 24, 24}, nullptr}, {{zeros.data(), 1, 24}, nullptr}};
  weights.decoder = {{{zeros.data(), 1, 24}, nullptr}, {{zeros.data(), 1, 1}, nullptr}};
  TempFolder folder = TempFolder::in_memory();
  save_model(folder / "discriminator", start.files(design, weights, {}));
  CHECK(same_design(load_model<float>(folder / "discriminator").design, design));
  const store::Checkpoint after = store::open_checkpoint(folder / "discriminator");
  for (const std::string& name : names_of(after)) CHECK_FALSE(name.starts_with("generator"));
}

TEST_CASE("another design is written as the first family that has it") {
  const StartingModel start(MASQUE_TEST_DATA "/model/bert");
  Design design = start.design();
  design.streams = Streams::kFixedKeys;
  design.mask = DefaultMask::kOthers;
  design.mask_token_id = 1;
  CHECK_FALSE(start.writes(design));
  CHECK(start.saved_design(design).plan.design.streams == Streams::kFixedKeys);
  TempFolder folder = TempFolder::in_memory();
  save_model(folder / "tta", start.files(design, start.weights(), {}));
  CHECK(load_model<float>(folder / "tta").design.family == "tta");
}

TEST_CASE("weights without config.json are refused") {
  CHECK(test::contains(test::message_of([] {
                         StartingModel(MASQUE_TEST_DATA "/safetensors/good/dtypes.safetensors");
                       }),
                       "config.json"));
}

}  // namespace
}  // namespace masque::model
