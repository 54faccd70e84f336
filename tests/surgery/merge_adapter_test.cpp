// LoRA adapters against merge_and_unload of PEFT 0.21.2 (scripts/goldens/adapters.py).
#include "surgery/adapter/merge_adapter.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "store/checkpoint.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/near.hpp"
#include "support/temp_folder.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::TempFolder;

const std::string kData = MASQUE_TEST_DATA;

std::vector<double> values_in(const store::Checkpoint& checkpoint, const store::TensorInfo& info) {
  std::vector<std::byte> bytes(info.bytes());
  checkpoint.read(info, 0, bytes);
  std::vector<double> values(info.elements());
  to_double(info.dtype, bytes, values);
  return values;
}

TEST_CASE("merged adapters are those of PEFT") {
  for (const std::string name : {"llama", "gpt2", "bert", "bert_headless"}) {
    CAPTURE(name);
    const std::string base = kData + "/model/" + name;
    const std::string adapter = kData + "/surgery/adapters/" + name;
    const TempFolder folder;
    const MergeReport report = merge_adapter(base, adapter, folder / "out", {});
    const store::Checkpoint wanted = store::open_checkpoint(adapter + "/merged.safetensors");
    const store::Checkpoint before = store::open_checkpoint(base);
    const store::Checkpoint after = store::open_checkpoint(folder / "out");
    // GPT-2's adapter has a product for the table to which the head is tied.
    for (const std::string& note : report.notes)
      CHECK((contains(note, "is copied unchanged") || contains(note, "as merge_and_unload")));
    CHECK(report.merged > 0);
    CHECK((name.starts_with("bert") ? report.replaced > 0 : report.replaced == 0));
    CHECK(after.tensors().size() == before.tensors().size());
    for (const store::TensorInfo& tensor : after.tensors()) {
      CAPTURE(tensor.name);
      const store::TensorInfo* changed = wanted.find(tensor.name);
      const auto& from = changed == nullptr ? before : wanted;
      CHECK(test::far_off(values_in(after, tensor), values_in(from, from.get(tensor.name)), 1e-6,
                          1e-6) == "");
    }
  }
}

TEST_CASE("the keys of adapter_config.json are used, harmless or refused") {
  const std::string base = kData + "/model/llama";
  const std::string from = kData + "/surgery/adapters/llama";
  const TempFolder folder;
  const std::string config = test::read_file(from + "/adapter_config.json");
  test::write_file(folder / "adapter_model.safetensors",
                   test::read_file(from + "/adapter_model.safetensors"));
  const auto merge = [&](const char* key, const char* value, MergeReport* report = nullptr) {
    test::write_file(folder / "adapter_config.json", set_json_member(config, {key}, value));
    return test::message_of([&] {
      const TempFolder to;
      const MergeReport done = merge_adapter(base, folder.path(), to / "out", {});
      if (report != nullptr) *report = done;
    });
  };
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, const char*>>{{"use_dora", "true"},
                                                        {"alora_invocation_tokens", "[1]"},
                                                        {"layer_replication", "[[0, 1]]"},
                                                        {"init_lora_weights", "\"pissa\""},
                                                        {"loftq_config", R"({"bits": 4})"},
                                                        {"trainable_token_indices", "[1]"},
                                                        {"lora_bias", "true"},
                                                        {"use_qalora", "true"},
                                                        {"target_parameters", "[\"x\"]"},
                                                        {"megatron_config", R"({"a": 1})"}}) {
    CAPTURE(key);
    CHECK(contains(merge(key, value), std::string(key) + " is "));
    CHECK(contains(merge(key, value), "cannot be merged"));
  }
  // Modules that PEFT leaves out, although the file has tensors of them.
  for (const auto& [key, value] : std::vector<std::pair<const char*, const char*>>{
           {"exclude_modules", R"(["v_proj"])"},
           {"exclude_modules", R"("model\\.layers\\.1\\..*")"},
           {"target_modules", R"(["q_proj", "down_proj"])"},
           {"target_modules", R"(".*layers\\.0\\..*")"},
           {"modules_to_save", R"(["mlp"])"},
           {"layers_to_transform", "[0]"},
           {"layers_to_transform", "1"}}) {
    CAPTURE(key);
    CAPTURE(value);
    CHECK(contains(merge(key, value), std::string(key) + " leaves out 'model.layers."));
  }
  CHECK(merge("exclude_modules", R"(["proj", "lm_head"])") == "(nothing thrown)");
  CHECK(merge("target_modules", R"(".*_proj")") == "(nothing thrown)");
  CHECK(merge("target_modules", R"("all-linear")") == "(nothing thrown)");
  CHECK(merge("layers_to_transform", "[1, 0]") == "(nothing thrown)");
  CHECK(contains(merge("lora_alpha", "null"), "lora_alpha is null, expected a number"));
  CHECK(contains(merge("peft_type", "\"IA3\""), "peft_type is \"IA3\", expected \"LORA\""));
  CHECK(contains(merge("r", "5"), "is 5, expected 2, that of its tensors"));
  CHECK(contains(merge("alpha_pattern", R"({"q_(": 1})"), "alpha_pattern: 'q_('"));
  CHECK(merge("lora_dropout", "0.5") == "(nothing thrown)");
  CHECK(merge("init_lora_weights", "\"gaussian\"") == "(nothing thrown)");
  MergeReport report;
  CHECK(merge("foo", "1", &report) == "(nothing thrown)");
  CHECK(std::ranges::count(report.notes, "unknown key of adapter_config.json is not used: foo") ==
        1);
  CHECK(contains(test::message_of([&] {
                   merge_adapter(kData + "/model/bert", folder.path(), folder / "out", {});
                 }),
                 "expected one for"));
}

/// Writes an adapter that has the tensor `name` of the checkpoint `base` as a whole, all 0.5.
void write_whole(const std::string& base, const std::string& name, const std::string& modules,
                 const std::string& folder) {
  const store::Checkpoint checkpoint = store::open_checkpoint(base);
  const store::TensorInfo& own = checkpoint.get(name);
  std::string bytes(own.bytes(), '\0');
  for (std::size_t i = 3; i < bytes.size(); i += 4) bytes[i] = 0x3F;  // 0.5 in F32
  test::write_file(folder + "/adapter_model.safetensors",
                   test::make_safetensors({{"base_model.model." + name, "F32", own.shape, bytes}}));
  test::write_file(
      folder + "/adapter_config.json",
      R"({"peft_type": "LORA", "target_modules": ["x"], "modules_to_save": )" + modules + "}");
}

TEST_CASE("a saved word table leaves the head that was tied to it the old one") {
  const std::string base = kData + "/model/gpt2";
  const std::string table = "transformer.wte.weight";
  const TempFolder folder;
  write_whole(base, table, "[\"wte\"]", folder.path());
  const MergeReport report = merge_adapter(base, folder.path(), folder / "out", {});
  CHECK(report.replaced == 1);
  CHECK(std::ranges::count(report.notes, "config.json: tie_word_embeddings becomes false") == 1);
  const store::Checkpoint before = store::open_checkpoint(base);
  const store::Checkpoint after = store::open_checkpoint(folder / "out");
  const std::vector<double> head = values_in(after, after.get("lm_head.weight"));
  CHECK(head == values_in(before, before.get(table)));
  CHECK(values_in(after, after.get(table)) == std::vector<double>(head.size(), 0.5));
  // Without modules_to_save PEFT writes into the table itself, which the head shares.
  write_whole(base, table, "null", folder.path());
  merge_adapter(base, folder.path(), folder / "shared", {});
  CHECK(store::open_checkpoint(folder / "shared").find("lm_head.weight") == nullptr);
  // T5's tied head is scaled, another one is not.
  const std::string t5 = kData + "/model/t5_full";
  write_whole(t5, "shared.weight", "[\"shared\"]", folder.path());
  CHECK(contains(test::message_of([&] { merge_adapter(t5, folder.path(), folder / "t5", {}); }),
                 "has no place for both"));
}

TEST_CASE("the base may lie in the folder of its adapter") {
  const TempFolder folder;
  const auto copy = [&](const std::string& from, const std::string& name) {
    test::write_file(folder / name, test::read_file(kData + from + name));
  };
  copy("/model/llama/", "config.json");
  copy("/model/llama/", "model.safetensors");
  copy("/surgery/adapters/llama/", "adapter_config.json");
  copy("/surgery/adapters/llama/", "adapter_model.safetensors");
  const std::string both = folder.path();
  CHECK(store::open_checkpoint(both).has_adapter());
  CHECK_FALSE(store::open_checkpoint(folder / "adapter_model.safetensors").has_adapter());
  const TempFolder to;
  CHECK(merge_adapter(both, both, to / "out", {}).notes.empty());
  const store::Checkpoint merged = store::open_checkpoint(to / "out");
  CHECK_FALSE(merged.has_adapter());
  const std::string adapter = kData + "/surgery/adapters/llama";
  const MergeReport apart = merge_adapter(kData + "/model/llama", adapter, to / "apart", {});
  CHECK(apart.merged > 0);
  const store::Checkpoint wanted = store::open_checkpoint(to / "apart");
  for (const store::TensorInfo& tensor : merged.tensors())
    CHECK(values_in(merged, tensor) == values_in(wanted, wanted.get(tensor.name)));
  CHECK(contains(test::message_of([&] { merge_adapter(both, adapter, to / "other", {}); }),
                 "a PEFT adapter (adapter_config.json) next to the weights"));
}

}  // namespace
}  // namespace masque::surgery
