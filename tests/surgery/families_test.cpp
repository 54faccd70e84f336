// Surgery on every family that loads: another number of tokens, an untied head, and the model
// loads again with just that.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "model/weights.hpp"
#include "store/checkpoint.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/edit/head.hpp"
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
    const std::string in = kModels + "/" + name;
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
    const std::string in = kModels + "/" + name;
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

TEST_CASE("Llama's head is its own unless the config ties it") {
  for (const char* tied : {"", ",\"tie_word_embeddings\":true"}) {
    CAPTURE(tied);
    const auto config = store::ModelConfig::parse(
        std::string(R"({"model_type":"llama","architectures":["LlamaForCausalLM"])") + tied + "}",
        "config.json");
    const store::Checkpoint checkpoint = store::open_checkpoint(kModels + "/llama");
    const EmbeddingTable table = find_embedding_table(checkpoint, config, std::nullopt);
    REQUIRE(table.family != nullptr);
    CHECK(table.family->name == "llama");
    CHECK(table.config_tied == (tied[0] != '\0'));
    CHECK(table.decoder_weight == "lm_head.weight");
  }
}

}  // namespace
}  // namespace masque::surgery
