// Dumps: every number at its place in the file.
#include "evaluate/score/dump.hpp"

#include <cstring>

#include <doctest/doctest.h>

#include "fake_model.hpp"
#include "store/checkpoint.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

using test::message_of;

std::vector<double> numbers(const store::Checkpoint& file, const std::string& name,
                            const Shape& shape) {
  const store::TensorInfo& info = file.get(name);
  CHECK(info.dtype == DType::kF64);
  CHECK(info.shape == shape);
  std::vector<double> out(info.elements());
  file.read(info, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

const std::vector<Sequence> kItems{
    {.number = 0, .ids = {5, 6, 7}}, {.number = 2, .ids = {8}}, {.number = 3, .ids = {9, 1}}};

TEST_CASE("tensors of every item, whatever the batches") {
  const FakeModel model(model::HeadKind::kMasked);
  const test::TempFolder temp;
  const std::string path = temp.path() + "/out.safetensors";
  for (const Index batch_tokens : {1, 4, 4096}) {
    DumpRequest request{.batch_tokens = batch_tokens};
    parse_dump_parts("hidden_states,logits,attentions", request);
    dump(model, kItems, request, path);
    const store::Checkpoint file = store::open_checkpoint(path);
    CHECK(file.tensors().size() == 9);
    for (const Sequence& item : kItems) {
      const std::string name = std::to_string(item.number) + ".";
      const std::uint64_t n = item.ids.size();
      const auto states = numbers(file, name + "hidden_states", {3, n, 3});
      const auto logits = numbers(file, name + "logits", {n, 12});
      const auto weights = numbers(file, name + "attentions", {2, 2, n, n});
      for (std::size_t layer = 0; layer < 3; ++layer) {
        for (std::size_t i = 0; i < n; ++i) {
          const auto expected =
              FakeModel::state_of(item.ids, static_cast<Index>(i), static_cast<Index>(layer));
          for (std::size_t j = 0; j < 3; ++j) CHECK(states[(layer * n + i) * 3 + j] == expected[j]);
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        const auto expected =
            fake_logits(item.ids, static_cast<Index>(i), 12, [](Index) { return true; });
        for (std::size_t v = 0; v < 12; ++v) CHECK(logits[i * 12 + v] == expected[v]);
      }
      CHECK(weights[n * n] == 100);       // layer 0, head 1
      CHECK(weights[2 * n * n] == 1000);  // layer 1, head 0
      CHECK(weights.back() == 1100 + static_cast<double>(n * n - 1));
    }
  }
}

TEST_CASE("two streams: a mask is what the query stream reads") {
  const FakeModel model(model::HeadKind::kCausal, model::DefaultMask::kFull, model::Streams::kTwo);
  const test::TempFolder temp;
  const std::string path = temp.path() + "/out.safetensors";
  std::vector<Sequence> items = kItems;
  items[2].mask = mask::parse_mask("causal & tta").bind({2, 2});
  DumpRequest request;
  parse_dump_parts("logits", request);
  dump(model, items, request, path);
  const store::Checkpoint file = store::open_checkpoint(path);
  const auto content = numbers(file, "0.logits", {3, 12});
  CHECK(content[0] == fake_logits(items[0].ids, 0, 12, [](Index) { return true; })[0]);
  const auto query = numbers(file, "3.logits", {2, 12});
  CHECK(query[12] == fake_logits(items[2].ids, 1, 12, [](Index j) { return j < 1; })[0]);
}

TEST_CASE("what is dumped is a list of names") {
  DumpRequest request;
  for (const char* bad : {"", "logit", "logits,", "logits hidden_states"})
    CHECK_THROWS_AS(parse_dump_parts(bad, request), UsageError);
}

}  // namespace
}  // namespace masque::evaluate
