// LoRA adapters against merge_and_unload of PEFT 0.21.2 (scripts/goldens/adapters.py).
#include "surgery/adapter/merge_adapter.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json.hpp"
#include "store/checkpoint.hpp"
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
    for (const std::string& note : report.notes) CHECK(contains(note, "is copied unchanged"));
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

}  // namespace
}  // namespace masque::surgery
