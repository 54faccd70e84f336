// Encoder–decoders: what a decoder reads in several runs, and what is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"
#include "store/checkpoint.hpp"
#include "store/safetensors/safetensors.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using kernel::Precision;
using test::contains;
using test::message_of;
using test::ModelCase;

const std::string kPairFolders = MASQUE_TEST_DATA "/encoder_decoder/";

ModelOptions with_decoder(Precision precision = Precision::kF64) {
  ModelOptions options;
  options.precision = precision;
  options.decoder = true;
  return options;
}

/// The last states of every row, by sequence.
class TargetRows final : public Observer {
 public:
  explicit TargetRows(std::size_t sequences) : of(sequences) {}
  void last_states(Index sequence, Index /*first*/, MatrixView<const double> rows) override {
    auto& out = of[static_cast<std::size_t>(sequence)];
    for (Index i = 0; i < rows.rows; ++i)
      out.insert(out.end(), rows.row_span(i).begin(), rows.row_span(i).end());
  }

  std::vector<std::vector<double>> of;
};

/// The rows of `texts`, of which the first `known` tokens are in the cache.
TargetRows read_targets(const Model& model, const std::vector<std::vector<TokenId>>& texts,
                        std::size_t known, const std::vector<std::vector<TokenId>>& sources,
                        KeyValueCache* cache) {
  Batch batch;
  for (const auto& ids : texts) batch.add(std::span(ids).subspan(known));
  batch.sources = sources;
  Request request;
  request.last_states = true;
  request.all_rows = true;
  request.cache = cache;
  TargetRows rows(texts.size());
  model.run(batch, request, &rows);
  return rows;
}

/// Copies the checkpoint of a case.
void copy_case(const std::string& name, const test::TempFolder& folder) {
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(kPairFolders + name + "/" + file, folder / file);
}

}  // namespace

TEST_CASE("a decoder that reads its target token by token gives what one run gives") {
  for (const ModelCase& one : test::encoder_decoder_cases()) {
    CAPTURE(one.name);
    const auto model = open_model(one.folder, with_decoder());
    const std::vector<std::vector<TokenId>> sources = {one.lines[0].source, one.lines[2].source};
    std::vector<std::vector<TokenId>> texts = {one.lines[2].ids, one.lines[2].ids};
    std::reverse(texts[1].begin(), texts[1].end());
    for (auto& ids : texts) ids.pop_back();  // room for one more
    const TargetRows together = read_targets(*model, texts, 0, sources, nullptr);
    const auto cache = model->make_cache(2, false);
    REQUIRE(cache != nullptr);
    TargetRows parts(2);
    for (std::size_t at = 0; at < texts[0].size(); ++at) {
      std::vector<std::vector<TokenId>> some;
      for (const auto& ids : texts)
        some.emplace_back(ids.begin(), ids.begin() + std::ptrdiff_t(at) + 1);
      const TargetRows next =
          read_targets(*model, some, at, at == 0 ? sources : decltype(sources)(), cache.get());
      for (std::size_t s = 0; s < 2; ++s)
        parts.of[s].insert(parts.of[s].end(), next.of[s].begin(), next.of[s].end());
    }
    for (std::size_t s = 0; s < 2; ++s) {
      REQUIRE(parts.of[s].size() == together.of[s].size());
      for (std::size_t i = 0; i < parts.of[s].size(); ++i)
        CHECK(parts.of[s][i] == doctest::Approx(together.of[s][i]).epsilon(1e-9));
    }
    // What is selected twice reads the source of what it was.
    cache->select(std::vector<Index>{1, 1, 0});
    const std::vector<std::vector<TokenId>> longer = {{7}, {8}, {7}};
    const TargetRows chosen = read_targets(*model, longer, 0, {}, cache.get());
    for (std::size_t s = 0; s < 3; ++s) {
      std::vector<TokenId> ids = texts[s < 2 ? 1 : 0];
      ids.push_back(longer[s][0]);
      const TargetRows alone = read_targets(*model, {ids}, 0, {sources[s < 2 ? 1 : 0]}, nullptr);
      const std::size_t width = chosen.of[s].size();
      for (std::size_t i = 0; i < width; ++i)
        CHECK(chosen.of[s][i] ==
              doctest::Approx(alone.of[0][alone.of[0].size() - width + i]).epsilon(1e-9));
    }
  }
}

TEST_CASE("another source gives other states, and a target needs one") {
  const auto model = open_model(kPairFolders + "t5", with_decoder());
  const std::vector<std::vector<TokenId>> text = {{0, 9, 5}};
  CHECK(read_targets(*model, text, 0, {{5, 6}}, nullptr).of !=
        read_targets(*model, text, 0, {{6, 5}}, nullptr).of);
  CHECK(contains(message_of<UsageError>([&] { read_targets(*model, text, 0, {}, nullptr); }),
                 "reads a source"));
  CHECK(contains(message_of([&] { read_targets(*model, text, 0, {{}}, nullptr); }),
                 "without tokens"));
  CHECK(
      contains(message_of([&] { read_targets(*model, text, 0, {{40}}, nullptr); }), "token id 40"));
  const auto cache = model->make_cache(1, false);
  CHECK(contains(message_of<UsageError>([&] { read_targets(*model, text, 0, {}, cache.get()); }),
                 "reads a source"));
}

TEST_CASE("masks and the like are refused: there are three kinds of attention") {
  ModelOptions options = with_decoder();
  options.masks = {{1, mask::parse_mask("causal")}};
  CHECK(contains(message_of<UsageError>([&] { open_model(kPairFolders + "t5", options); }),
                 "encoder–decoder"));
  options = with_decoder();
  options.normalizer = "log_n";
  CHECK(contains(message_of<UsageError>([&] { open_model(kPairFolders + "t5", options); }),
                 "encoder–decoder"));
}

TEST_CASE("without its decoder, or if it is not wanted, the encoder alone is opened") {
  const auto alone = open_model(MASQUE_TEST_DATA "/model/t5_encoder", with_decoder());
  CHECK(alone->encoder() == nullptr);
  CHECK_FALSE(alone->design().source);
  const auto encoder = open_model(kPairFolders + "t5", {.precision = Precision::kF64});
  CHECK(encoder->encoder() == nullptr);
  CHECK(encoder->design().notes.size() == 1);
  const auto both = open_model(kPairFolders + "t5", with_decoder());
  CHECK(both->design().source);
  CHECK(both->design().notes.empty());
  CHECK(both->unused().empty());
  REQUIRE(both->encoder() != nullptr);
  CHECK(both->encoder()->design().notes.empty());
}

TEST_CASE("tensors of the decoder that are missing or that nothing uses are named") {
  const auto with = [](const auto& change) {
    const test::TempFolder folder;
    copy_case("t5", folder);
    std::string bytes = test::read_file(folder / "model.safetensors");
    change(bytes);
    test::write_file(folder / "model.safetensors", bytes);
    return message_of([&] { open_model(folder.path(), with_decoder()); });
  };
  const auto renamed = [](std::string from, std::string to) {
    return [=](std::string& bytes) {
      REQUIRE(from.size() == to.size());
      bytes.replace(bytes.find("\"" + from + "\"") + 1, from.size(), to);
    };
  };
  const std::string name = "decoder.block.1.layer.1.EncDecAttention.k.weight";
  const std::string other = "decoder.block.1.layer.1.EncDecAttention.z.weight";
  CHECK(contains(with(renamed(name, other)), "no tensor '" + name + "'"));
  const std::string bias = "decoder.block.2.layer.1.EncDecAttention.k.weight";
  CHECK(contains(with(renamed(bias, "decoder.block.1.layer.1.EncDecAttention.k.biases")),
                 "no tensor '" + bias + "'"));
  CHECK(with([](std::string&) {}) == "(nothing thrown)");
  const test::TempFolder folder;
  copy_case("t5", folder);
  test::write_file(folder / "config.json", set_json_member(test::read_file(folder / "config.json"),
                                                           {"num_decoder_layers"}, "2"));
  const auto fewer = open_model(folder.path(), with_decoder());
  REQUIRE(fewer->design().notes.size() == 1);
  CHECK(contains(fewer->design().notes[0], "layers 2 to 2 of the weights are ignored"));
}

TEST_CASE("encoder and decoder share their word table") {
  const auto pair = load_pair<float>(kPairFolders + "mt5");
  REQUIRE(pair);
  CHECK(pair->encoder.weights.word_table.view.data == pair->decoder.weights.word_table.view.data);
  CHECK(pair->decoder.weights.decoder.weight.view.data ==
        pair->encoder.weights.word_table.view.data);
  const auto untied = load_pair<float>(kPairFolders + "t5_untied");
  REQUIRE(untied);
  CHECK_FALSE(untied->decoder.design.head.tied);
  CHECK(untied->decoder.design.notes.empty());
  CHECK_FALSE(load_pair<float>(MASQUE_TEST_DATA "/model/bert"));
  CHECK_FALSE(load_pair<float>(MASQUE_TEST_DATA "/model/t5_encoder"));
}

}  // namespace masque::model
