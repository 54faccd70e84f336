// Sequences that are read in several runs, against one run.
#include "model/key_value_cache.hpp"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "model/masks.hpp"
#include "model/prepared.hpp"
#include "model/random_model.hpp"
#include "model/transformer.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::model {
namespace {

const std::string kFolders = std::string(MASQUE_TEST_DATA) + "/model/";

/// Last states of all rows, by sequence.
class LastStates : public Observer {
 public:
  explicit LastStates(Index sequences) : of(static_cast<std::size_t>(sequences)) {}
  void last_states(Index sequence, Index /*first*/, MatrixView<const double> rows) override {
    auto& out = of[static_cast<std::size_t>(sequence)];
    for (Index i = 0; i < rows.rows; ++i)
      out.insert(out.end(), rows.row_span(i).begin(), rows.row_span(i).end());
  }

  std::vector<std::vector<double>> of;
};

using Texts = std::vector<std::vector<TokenId>>;

Texts random_texts(Index vocabulary, std::initializer_list<Index> lengths) {
  Texts texts;
  Draw draw(11, "texts");
  for (const Index length : lengths) {
    auto& ids = texts.emplace_back();
    for (Index i = 0; i < length; ++i)
      ids.push_back(static_cast<TokenId>(4 + draw.below(vocabulary - 4)));
  }
  return texts;
}

mask::Mask causal(std::size_t length) {
  const auto n = static_cast<Index>(length);
  return mask::parse_mask("causal").bind({n, n});
}

/// Runs tokens [from[s], to[s]) of every text.
LastStates run(const Model& model, const Texts& texts, const std::vector<std::size_t>& from,
               const std::vector<std::size_t>& to, bool own_masks, KeyValueCache* cache) {
  Batch batch;
  for (std::size_t s = 0; s < texts.size(); ++s) {
    const auto ids = std::span(texts[s]).subspan(from[s], to[s] - from[s]);
    SequenceParts parts;
    const std::vector<Index> segments(ids.size(), model.design().type_vocab_size > 1 ? 1 : 0);
    if (s % 2 == 1) parts.segments = segments;
    if (own_masks) parts.mask = causal(to[s]);
    batch.add(ids, parts);
  }
  Request request;
  request.all_rows = true;
  request.last_states = true;
  request.cache = cache;
  LastStates states(batch.sequences());
  model.run(batch, request, &states);
  return states;
}

void check_cache(const Model& model, bool own_masks) {
  const Texts texts = random_texts(model.design().vocab_size, {9, 1, 6, 10});
  const std::vector<std::size_t> none(4, 0);
  std::vector<std::size_t> ends;
  for (const auto& ids : texts) ends.push_back(ids.size());
  const LastStates whole = run(model, texts, none, ends, own_masks, nullptr);
  const auto cache = model.make_cache(4, own_masks);
  REQUIRE(cache != nullptr);
  std::vector<std::vector<double>> parts(4);
  Draw draw(5, "parts");
  std::vector<std::size_t> from = none;
  while (from != ends) {
    std::vector<std::size_t> to = from;
    for (std::size_t s = 0; s < to.size(); ++s)
      to[s] += static_cast<std::size_t>(draw.below(static_cast<Index>(ends[s] - from[s]) + 1));
    const LastStates part = run(model, texts, from, to, own_masks, cache.get());
    for (std::size_t s = 0; s < 4; ++s) {
      parts[s].insert(parts[s].end(), part.of[s].begin(), part.of[s].end());
      CHECK(cache->length(static_cast<Index>(s)) == static_cast<Index>(to[s]));
    }
    from = to;
  }
  for (std::size_t s = 0; s < 4; ++s) {
    REQUIRE(parts[s].size() == whole.of[s].size());
    for (std::size_t i = 0; i < parts[s].size(); ++i)
      CHECK(parts[s][i] == doctest::Approx(whole.of[s][i]).epsilon(1e-9));
  }
}

std::unique_ptr<Model> model_of_case(const std::string& name) {
  return open_model(kFolders + name,
                    {.precision = kernel::Precision::kF64, .mask_token_id = TokenId{4}});
}

std::unique_ptr<Model> random_model(const std::string& members) {
  const Design design = test::tiny_design(members);
  return std::make_unique<Transformer<double>>(
      prepare(LoadedModel<double>{.design = design,
                                  .weights = test::random_weights<double>(design, 3),
                                  .path = "tiny",
                                  .unused = {}},
              kernel::Precision::kF64),
      ModelOptions{});
}

}  // namespace

TEST_CASE("causal models: runs over parts give what one run gives") {
  for (const char* name :
       {"gpt2", "gpt2_layer_scale", "llama", "llama_scaled", "gpt_neox", "gpt_neox_serial"}) {
    CAPTURE(name);
    check_cache(*model_of_case(name), false);
  }
}

TEST_CASE("other models under causal masks of each text, with windows and relative positions") {
  for (const char* name : {"bert", "roberta", "albert", "roformer", "roformer_value", "modernbert",
                           "gau_alpha", "t5_encoder", "mpnet", "deberta_v2_c2p"}) {
    CAPTURE(name);
    check_cache(*model_of_case(name), true);
    CHECK(model_of_case(name)->make_cache(1, false) == nullptr);
  }
}

TEST_CASE("causal models of every position scheme but those that need whole sequences") {
  std::string without;
  for (const std::string& name : nn::position_names()) {
    CAPTURE(name);
    const auto model = random_model("\"mask\": \"causal\", \"position\": \"" + name + "\"");
    if (model->make_cache(1, false) != nullptr) {
      check_cache(*model, false);
    } else {
      without += name + " ";
    }
  }
  CHECK(without == "convolutional shaw urpe ");
  check_cache(*random_model(R"x("mask": "causal", "normalizer": "log_n(base=4)")x"), false);
  check_cache(*random_model(R"("mask": "causal", "layer_kind": "gated_attention",
                               "attention_key_size": 8, "position": "rope")"),
              false);
}

TEST_CASE("what needs whole sequences has no cache") {
  for (const char* name : {"tta", "xlnet", "xlnet_uni", "deberta_v2_conv"}) {
    CAPTURE(name);
    CHECK(model_of_case(name)->make_cache(1, true) == nullptr);
  }
  for (const char* members : {R"("talking_heads": "both")", R"("mixer": "synthesizer_dense")"}) {
    CAPTURE(members);
    CHECK(random_model(members)->make_cache(1, true) == nullptr);
  }
  const auto masked = open_model(kFolders + "gpt2", {.masks = {{1, mask::parse_mask("full")}}});
  CHECK(masked->make_cache(1, false) == nullptr);
}

TEST_CASE("padding that has no position is not where the next one counts from") {
  const auto model = model_of_case("roberta");
  REQUIRE(model->design().pad_token_id);
  const TokenId pad = static_cast<TokenId>(*model->design().pad_token_id);
  const Texts texts{{5, 6, 7, pad, 8, 9}, {pad, 5, pad, pad, 6, 7}};
  const LastStates whole = run(*model, texts, {0, 0}, {6, 6}, true, nullptr);
  const auto cache = model->make_cache(2, true);
  run(*model, texts, {0, 0}, {4, 3}, true, cache.get());
  cache->select(std::vector<Index>{0, 1});
  const LastStates next = run(*model, texts, {4, 3}, {6, 6}, true, cache.get());
  for (std::size_t s = 0; s < 2; ++s) {
    const auto expected = std::span(whole.of[s]).last(next.of[s].size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(next.of[s][i] == doctest::Approx(expected[i]).epsilon(1e-9));
  }
}

TEST_CASE("sequences are copied, moved and forgotten, and go on apart") {
  const auto model = model_of_case("gpt2");
  const Texts texts = random_texts(model->design().vocab_size, {4, 3});
  const auto cache = model->make_cache(2, false);
  run(*model, texts, {0, 0}, {4, 3}, false, cache.get());
  cache->select(std::vector<Index>{1, 1, 0});
  CHECK(cache->sequences() == 3);
  Texts longer{texts[1], texts[1], texts[0]};
  longer[0].push_back(7);
  longer[1].push_back(9);
  longer[2].push_back(7);
  const LastStates next = run(*model, longer, {3, 3, 4}, {4, 4, 5}, false, cache.get());
  const LastStates whole = run(*model, longer, {0, 0, 0}, {4, 4, 5}, false, nullptr);
  for (std::size_t s = 0; s < 3; ++s) {
    const auto expected = std::span(whole.of[s]).last(next.of[s].size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(next.of[s][i] == doctest::Approx(expected[i]).epsilon(1e-9));
  }
}

TEST_CASE("memory for a sequence grows to that of its longest and no further, and so for copies") {
  const auto model = model_of_case("gpt2");
  Texts texts = random_texts(model->design().vocab_size, {12, 12});
  const auto cache = model->make_cache(2, false);
  cache->set_longest(0, 11);
  auto& rows = dynamic_cast<KeyValues<double>&>(*cache);
  const auto read = [&](std::size_t from, std::size_t to) {
    const std::vector<std::size_t> first(texts.size(), from), last(texts.size(), to);
    run(*model, texts, first, last, false, cache.get());
  };
  read(0, 5);
  CHECK(rows.room(0) == 5);
  CHECK(rows.room(1) == 5);
  texts.push_back(texts[0]);
  texts.push_back(texts[1]);
  cache->select(std::vector<Index>{0, 1, 0, 1});
  CHECK(rows.room(2) == 5);
  read(5, 6);
  CHECK(rows.room(0) == 10);
  CHECK(rows.room(1) == 10);
  read(6, 11);
  for (Index s = 0; s < 4; ++s) CHECK(rows.room(s) == (s % 2 == 0 ? 11 : 20));
  // A text that is longer than expected is read as well.
  read(11, 12);
  CHECK(rows.room(2) == 22);
  // Memory of another text is not taken.
  cache->select(std::vector<Index>{0, 1});
  cache->set_longest(0, 12);
  cache->select(std::vector<Index>{0, 0});
  CHECK(rows.room(0) == 12);
  CHECK(rows.room(1) == 22);
}

TEST_CASE("what beams read is what each of their texts reads alone") {
  const auto model = model_of_case("gpt2");
  Draw draw(9, "beams");
  Texts texts = random_texts(model->design().vocab_size, {5});
  const auto cache = model->make_cache(1, false);
  run(*model, texts, {0}, {5}, false, cache.get());
  // Three beams of one prompt, which part, take each other's places and join again.
  for (std::size_t length = 5; length < 12; ++length) {
    std::vector<Index> from(3);
    for (Index& s : from) s = draw.below(std::ssize(texts));
    Texts longer;
    for (const Index s : from) {
      longer.push_back(texts[static_cast<std::size_t>(s)]);
      longer.back().push_back(static_cast<TokenId>(draw.below(model->design().vocab_size)));
    }
    texts = longer;
    cache->select(from);
    const std::vector<std::size_t> before(3, length), after(3, length + 1);
    const LastStates next = run(*model, texts, before, after, false, cache.get());
    const LastStates whole = run(*model, texts, {0, 0, 0}, after, false, nullptr);
    for (std::size_t s = 0; s < 3; ++s) {
      const auto expected = std::span(whole.of[s]).last(next.of[s].size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(next.of[s][i] == doctest::Approx(expected[i]).epsilon(1e-9));
    }
  }
}

}  // namespace masque::model
