// Tensors that share their bytes, in formats that can say so and in those that cannot.
#include <algorithm>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/aliases.hpp"
#include "surgery/convert/convert_checkpoint.hpp"

namespace masque::surgery {
namespace {

using namespace store;  // NOLINT(google-build-using-namespace): what is converted

using test::contains;
using test::TempFolder;

using Names = std::vector<std::string>;

constexpr const char* kTable = "bert.embeddings.word_embeddings.weight";
constexpr const char* kDecoder = "cls.predictions.decoder.weight";

OutputTensor tensor(const std::string& name, const std::string& alias_of = {}) {
  return {{.name = name, .dtype = DType::kU8, .shape = {1}, .alias_of = alias_of}, Literal{"x"}};
}

OutputWeights tied(const std::string& writer, bool decoder_first) {
  OutputWeights weights;
  for (const WeightsWriter* each : weights_writers()) {
    if (each->name == writer) weights.writer = each->name;
  }
  if (decoder_first) {
    weights.tensors = {tensor(kDecoder), tensor("other", kDecoder), tensor(kTable, kDecoder)};
  } else {
    weights.tensors = {tensor(kTable), tensor("other", kTable), tensor(kDecoder, kTable)};
  }
  return weights;
}

Names names_of(const OutputWeights& weights) {
  Names names;
  for (const OutputTensor& each : weights.tensors)
    names.push_back(each.info.name + (each.info.alias_of.empty() ? "" : "*"));
  return names;
}

const std::string kTied = R"({"model_type":"bert"})";
const std::string kUntied = R"({"model_type":"bert","tie_word_embeddings":false})";

TEST_CASE("what the config ties is left out, whichever of the two comes first") {
  for (const bool first : {false, true}) {
    OutputWeights weights = tied("safetensors", first);
    Names notes;
    settle_aliases(weights, ModelConfig::parse(kTied, "c"), notes);
    CHECK(names_of(weights) == (first ? Names{"other", kTable} : Names{kTable, "other"}));
    REQUIRE(notes.size() == 2);
    CHECK(contains(notes[0] + notes[1],
                   "'cls.predictions.decoder.weight' is left out: "
                   "config.json ties it to 'bert.embeddings"));
    CHECK(contains(notes[0] + notes[1], "stored as a separate copy"));
  }
}

TEST_CASE("what nothing ties is copied") {
  for (const auto& config :
       {std::optional(ModelConfig::parse(kUntied, "c")),
        std::optional(ModelConfig::parse("{}", "c")), std::optional<ModelConfig>()}) {
    OutputWeights weights = tied("npz", false);
    Names notes;
    settle_aliases(weights, config, notes);
    CHECK(names_of(weights) == Names{kTable, "other", kDecoder});
    CHECK(notes.size() == 2);
  }
}

TEST_CASE("the biases of an untied head's second name are no tie of the table") {
  OutputWeights weights = tied("safetensors", false);
  weights.tensors.push_back(tensor("cls.predictions.bias"));
  weights.tensors.push_back(tensor("cls.predictions.decoder.bias", "cls.predictions.bias"));
  Names notes;
  settle_aliases(weights, ModelConfig::parse(kTied, "c"), notes);
  CHECK(names_of(weights) == Names{kTable, "other", "cls.predictions.bias"});
}

TEST_CASE("in an order of its own the first has the bytes") {
  OutputWeights weights = tied("safetensors", false);
  std::reverse(weights.tensors.begin(), weights.tensors.end());
  order_aliases(weights);
  CHECK(names_of(weights) == Names{kDecoder, "other*", std::string(kTable) + "*"});
  CHECK(weights.tensors[1].info.alias_of == kDecoder);
  // The first one is in another file.
  weights.tensors.erase(weights.tensors.begin());
  order_aliases(weights);
  CHECK(names_of(weights) == Names{"other", std::string(kTable) + "*"});
  CHECK(weights.tensors[1].info.alias_of == "other");
}

TEST_CASE("a writer that shares bytes keeps them shared, with a new type too") {
  for (const WeightsWriter* writer : weights_writers()) {
    if (!writer->has_aliases) continue;
    CAPTURE(writer->name);
    const TempFolder folder;
    const std::string in = folder / ("in" + std::string(writer->extension));
    OutputWeights weights;
    weights.writer = writer->name;
    const Computed source{
        .fill = [](std::uint64_t,
                   MutableBytes out) { std::fill(out.begin(), out.end(), std::byte{0x3F}); },
        .chunk_bytes = 1 << 20,
        .origin = &weights};
    weights.tensors = {
        {{.name = "b", .dtype = DType::kF32, .shape = {5}}, source},
        {{.name = "a", .dtype = DType::kF32, .shape = {5}, .alias_of = "b"}, source}};
    write_checkpoint_file(in, weights, {});
    REQUIRE(open_checkpoint(in).get("a").alias_of == "b");
    ConvertRequest request;
    for (const auto dtype : {std::optional<DType>(), std::optional(DType::kF64)}) {
      request.dtype = dtype;
      const std::string out = folder / ("out" + std::string(writer->extension));
      CHECK(convert_checkpoint(in, out, request).notes.empty());
      CHECK(open_checkpoint(out).get("a").alias_of == "b");
    }
    const auto result = convert_checkpoint(in, folder / "out.safetensors", {});
    CHECK(result.notes ==
          Names{"'a' shares its bytes with another tensor; stored as a separate copy"});
    CHECK(open_checkpoint(folder / "out.safetensors").tensors().size() == 2);
  }
}

}  // namespace
}  // namespace masque::surgery
