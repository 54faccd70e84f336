// A new checkpoint has the tensors that transformers saves for the same config, filled as it fills
// them, and the same bytes for any number of threads and shards.
#include "model/checkpoint/new_checkpoint.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "model/checkpoint/starting_model.hpp"
#include "model/family_names.hpp"
#include "model/model.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/safetensors/safetensors.hpp"
#include "store/values.hpp"
#include "support/message.hpp"
#include "support/near.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

using namespace masque::store;  // checkpoints, and what reads them back

using test::contains;
using test::far_off;
using test::message_of;
using test::names_in;
using test::read_file;
using test::read_table;
using test::Row;
using test::TempFolder;
using test::write_file;

const std::string kFamilies = MASQUE_TEST_DATA "/family";

using Names = std::vector<std::string>;

/// A config that transformers wrote, and what it saved for it: "name [2,3]", sorted.
struct Golden {
  std::string stem;
  std::string config_path;
  const Family* family = nullptr;
  Names tied;
  Names untied_only;
};

std::string text_of(const std::string& name, const Shape& shape) {
  return name + " " + shape_text(shape);
}

std::vector<Golden> goldens() {
  std::vector<Golden> out;
  for (const std::string& name : names_in(kFamilies)) {
    if (!name.ends_with(".config.json")) continue;
    Golden golden;
    golden.stem = name.substr(0, name.size() - 12);
    golden.config_path = kFamilies + "/" + name;
    golden.family = find_family(ModelConfig::read(golden.config_path).model_type());
    REQUIRE_MESSAGE(golden.family != nullptr, name, ": no family");
    for (const Row& row : read_table(kFamilies + "/" + golden.stem + ".tensors.tsv", 3)) {
      REQUIRE((row[2] == "tied" || row[2] == "untied-only"));
      (row[2] == "tied" ? golden.tied : golden.untied_only)
          .push_back(fmt::format("{} [{}]", row[0], row[1]));
    }
    std::sort(golden.tied.begin(), golden.tied.end());
    std::sort(golden.untied_only.begin(), golden.untied_only.end());
    out.push_back(golden);
  }
  REQUIRE(out.size() >= 29);
  return out;
}

const Golden& golden_of(const std::vector<Golden>& all, std::string_view stem) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Golden& g) { return g.stem == stem; });
  REQUIRE(found != all.end());
  return *found;
}

template <class Tensors>
Names texts_of(const Tensors& tensors) {
  Names texts;
  for (const auto& tensor : tensors) texts.push_back(text_of(tensor.name, tensor.shape));
  std::sort(texts.begin(), texts.end());
  return texts;
}

bool has(const Names& texts, const std::string& name) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.starts_with(name + " "); });
}

std::string total_of(const std::string& path) {
  return hash_checkpoint(open_checkpoint(path), HashKind::kSha256, 2, {}).total;
}

/// Makes a checkpoint of a config that stands in a file of its own.
Checkpoint made(const TempFolder& folder, const std::string& config, NewCheckpointRequest request,
                const std::string& name = "made") {
  write_file(folder / (name + ".json"), config);
  request.write.existing = Existing::kReplace;
  new_checkpoint(folder / (name + ".json"), folder / name, request);
  return open_checkpoint(folder / name);
}

TEST_CASE("a config asks for exactly the tensors that transformers saves for it") {
  for (const Golden& golden : goldens()) {
    CAPTURE(golden.stem);
    const NewModel model = new_model(*golden.family, ModelConfig::read(golden.config_path));
    CHECK(model.notes == std::vector<std::string>());  // every name is one that transformers writes
    CHECK(texts_of(model.tensors) == golden.tied);
  }
}

TEST_CASE("a new checkpoint is a folder with these tensors and the config as it was") {
  for (const Golden& golden : goldens()) {
    CAPTURE(golden.stem);
    const TempFolder folder;
    const auto result = new_checkpoint(golden.config_path, folder / "out", {});
    CHECK(names_in(folder / "out") == Names{"config.json", "model.safetensors"});
    CHECK(folder.names() == Names{"out"});
    CHECK(read_file(folder / "out/config.json") == read_file(golden.config_path));
    const Checkpoint checkpoint = open_checkpoint(folder / "out");
    CHECK(texts_of(checkpoint.tensors()) == golden.tied);
    CHECK(std::is_sorted(checkpoint.tensors().begin(), checkpoint.tensors().end(),
                         safetensors_before));
    CHECK(checkpoint.files()[0].content.metadata == Metadata{{"format", "pt"}});
    std::uint64_t elements = 0;
    for (const TensorInfo& tensor : checkpoint.tensors()) elements += tensor.elements();
    CHECK(result.family == golden.family->name);
    CHECK(result.tensors == golden.tied.size());
    CHECK(result.parameters == elements);
    CHECK(result.files == 1);
  }
}

/// The config with another value of a member.
ModelConfig with_member(const ModelConfig& config, const char* name, const std::string& value) {
  return ModelConfig::parse(set_json_member(config.text(), {name}, value), config.path());
}

TEST_CASE("untying adds the decoder weight and the copies of the head, and nothing else") {
  for (const Golden& golden : goldens()) {
    CAPTURE(golden.stem);
    const ModelConfig config = ModelConfig::read(golden.config_path);
    const ModelConfig untied = with_member(config, golden.family->files.tie_field.data(), "false");
    if (golden.family->name == "bart") {
      CHECK(contains(message_of([&] { new_model(*golden.family, untied); }),
                     "tie_word_embeddings is false, expected true"));
      continue;
    }
    Names expected = golden.tied;
    expected.insert(expected.end(), golden.untied_only.begin(), golden.untied_only.end());
    std::sort(expected.begin(), expected.end());
    CHECK(texts_of(new_model(*golden.family, untied).tensors) == expected);
  }
}

/// A name with "{}" for every number between dots.
std::string numberless(std::string_view name) {
  std::string out;
  for (const std::string& part : test::split(name, '.')) {
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (out.empty() ? "" : ".") + (number || part.starts_with('{') ? "{}" : part);
  }
  return out;
}

/// Names of files that transformers reads and the goldens' models do not save, by family.
const std::map<std::string_view, std::set<std::string>> kNotSaved = {
    {"t5", {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}},
    {"bart", {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}},
    {"gau_alpha",
     {"gau_alpha.encoder.layer.{}.gau.i_dense.bias",
      "gau_alpha.encoder.layer.{}.gau.k_scaleoffset.bias",
      "gau_alpha.encoder.layer.{}.gau.o_dense.bias",
      "gau_alpha.encoder.layer.{}.gau.q_scaleoffset.bias"}},
    // The goldens' models are tied, and biases are of untied ones alone.
    {"llada",
     {"model.transformer.blocks.{}.attn_norm.bias", "model.transformer.blocks.{}.attn_out.bias",
      "model.transformer.blocks.{}.ff_norm.bias", "model.transformer.blocks.{}.ff_out.bias",
      "model.transformer.blocks.{}.ff_proj.bias", "model.transformer.blocks.{}.k_norm.bias",
      "model.transformer.blocks.{}.q_norm.bias", "model.transformer.blocks.{}.up_proj.bias",
      "model.transformer.ff_out.bias", "model.transformer.ln_f.bias"}},
    {"deberta_v2",
     {"lm_predictions.lm_head.LayerNorm.bias", "lm_predictions.lm_head.LayerNorm.weight",
      "lm_predictions.lm_head.bias", "lm_predictions.lm_head.dense.bias",
      "lm_predictions.lm_head.dense.weight"}},
};

TEST_CASE("the names that changes to checkpoints go by are those of the models") {
  const auto all = goldens();
  REQUIRE(family_names().size() == 29);
  for (const FamilyNames& names : family_names()) {
    if (names.name == "masque") continue;  // ours
    CAPTURE(names.name);
    std::set<std::string> made;
    std::set<std::string> untied;
    for (const Golden& golden : all) {
      if (golden.family->name != names.name && golden.family->like != names.name) continue;
      CAPTURE(golden.stem);
      for (const std::string& text : golden.tied)
        made.insert(numberless(text.substr(0, text.find(' '))));
      for (const std::string& text : golden.untied_only)
        untied.insert(text.substr(0, text.find(' ')));
      CHECK(has(golden.tied, with_prefix(names.input_table, names.prefix)));
      const auto classes = ModelConfig::read(golden.config_path).architectures();
      REQUIRE(classes.size() == 1);
      if (classes[0].ends_with("EncoderModel")) continue;
      CHECK(std::count(names.lm_classes.begin(), names.lm_classes.end(), classes[0]) == 1);
    }
    std::vector<std::string> tables = names.head_evidence;
    for (const std::string& name : {names.position_table, names.segment_table, names.output_bias})
      if (!name.empty()) tables.push_back(name);
    for (const std::string& name : tables) {
      CAPTURE(name);
      CHECK(made.contains(with_prefix(name, names.prefix)));
    }
    if (names.name == "neobert") continue;  // whose head is never tied
    std::set<std::string> listed;
    for (const std::string& tensor : names.tensors) {
      const std::string name = numberless(with_prefix(tensor, names.prefix));
      if (!name.ends_with(".*")) {
        listed.insert(name);
        continue;
      }
      listed.insert(name.substr(0, name.size() - 1) + "weight");
      listed.insert(name.substr(0, name.size() - 1) + "bias");
    }
    for (const std::string& name : made) {
      CAPTURE(name);
      CHECK(listed.contains(name));
    }
    for (const std::string& name : listed) {
      CAPTURE(name);
      const auto beyond = kNotSaved.find(names.name);
      CHECK((made.contains(name) || (beyond != kNotSaved.end() && beyond->second.contains(name))));
    }
    // Their heads are the decoders'.
    if (names.name == "t5" || names.name == "bart") continue;
    std::set<std::string> heads = {names.decoder_weight};
    for (const HeadCopy& copy : names.head_copies) heads.insert(copy.name);
    CHECK(heads == untied);
  }
}

TEST_CASE("every family of transformers has a golden config, and its class is the one it names") {
  const auto all = goldens();
  for (const Family* family : families()) {
    if (family->name == "masque" || family->name == "tta") continue;  // ours
    CAPTURE(family->name);
    int seen = 0;
    for (const Golden& golden : all) {
      if (golden.family != family) continue;
      ++seen;
      CAPTURE(golden.stem);
      const ModelConfig config = ModelConfig::read(golden.config_path);
      const NewModel model = new_model(*family, config);
      CHECK(config.architectures() ==
            Names{class_name(*family, config.model_type(), model.design.head.kind)});
      CHECK(model.config == config.text());
    }
    CHECK(seen > 0);
  }
}

TEST_CASE("the bytes do not depend on threads and shards") {
  for (const Golden& golden : goldens()) {
    CAPTURE(golden.stem);
    const TempFolder folder;
    NewCheckpointRequest request;
    request.seed = 11;
    request.write.threads = 1;
    new_checkpoint(golden.config_path, folder / "one", request);
    const std::string bytes = read_file(folder / "one/model.safetensors");
    const std::string total = total_of(folder / "one");
    int made = 0;
    for (const auto& pair :
         {std::pair{2, 0U}, {5, 0U}, {1, 5000U}, {5, 5000U}, {2, 1U}, {2, 1000000000U}}) {
      const auto& threads = pair.first;
      const auto& shard = pair.second;
      CAPTURE(threads);
      CAPTURE(shard);
      request.write.threads = threads;
      request.shard_bytes.reset();
      if (shard > 0) request.shard_bytes = shard;
      const std::string out = folder / fmt::format("{}", made++);
      const auto result = new_checkpoint(golden.config_path, out, request);
      CHECK(total_of(out) == total);
      CHECK(open_checkpoint(out).files().size() == result.files);
      if (shard == 1) CHECK(result.files == golden.tied.size());
      if (shard == 0 || shard > 5000) CHECK(read_file(out + "/model.safetensors") == bytes);
    }
  }
}

/// What a new model computes for a few tokens.
std::vector<double> outputs_of(const std::string& path) {
  struct Rows : Observer {
    std::vector<double> values;
    void hidden_states(Index, Index, MatrixView<const float> rows) override {
      for (Index i = 0; i < rows.rows * rows.columns; ++i) values.push_back(rows.data[i]);
    }
  };
  const auto model = open_model(path);
  CHECK(model->unused().empty());
  Batch batch;
  batch.add(std::vector<TokenId>{5, 9, 4, 9, 7});
  Request request;
  request.hidden_states = true;
  Rows rows;
  model->run(batch, request, &rows);
  return rows.values;
}

TEST_CASE("a new model of every family loads, runs, and is saved as the same bytes") {
  std::set<std::string_view> seen;
  const auto check = [&](const std::string& config_path) {
    CAPTURE(config_path);
    const TempFolder folder;
    const auto made = new_checkpoint(config_path, folder / "new", {.seed = 3});
    seen.insert(find_family(made.family)->name);
    const std::vector<double> values = outputs_of(folder / "new");
    CHECK_FALSE(values.empty());
    CHECK(std::ranges::all_of(values, [](double x) { return std::isfinite(x); }));
    if (const auto pair = load_pair<float>(folder / "new")) {
      CHECK(pair->decoder.unused.empty());
      return;  // of these the encoder alone is saved
    }
    const StartingModel model(folder / "new");
    const ModelWeights<float> weights = model.weights();
    SaveOptions options;
    save_model(folder / "again", model.files(model.design(), weights, {}), options);
    CHECK((read_file(folder / "again/model.safetensors") ==
           read_file(folder / "new/model.safetensors")));
    CHECK(read_file(folder / "again/config.json") == read_file(folder / "new/config.json"));
  };
  for (const Golden& golden : goldens()) check(golden.config_path);
  const TempFolder folder;
  for (const char* text :
       {R"({"model_type": "tta", "vocab_size": 21, "hidden_size": 8, "num_hidden_layers": 2,
            "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 9,
            "mask_token_id": 4, "dtype": "float32"})",
        R"({"model_type": "masque", "vocab_size": 21, "hidden_size": 8, "num_hidden_layers": 2,
            "num_attention_heads": 2, "max_position_embeddings": 9, "position": "t5",
            "talking_heads": "both", "dtype": "float32"})"}) {
    write_file(folder / "c.json", text);
    check(folder / "c.json");
  }
  CHECK(seen.size() == families().size());
}

constexpr const char* kSmall = R"({"model_type": "bert", "vocab_size": 400, "hidden_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": 64})";

TEST_CASE("another seed and another name give other values, the same ones the same") {
  const TempFolder folder;
  const std::string query = "bert.encoder.layer.0.attention.self.query.weight";
  const std::string key = "bert.encoder.layer.0.attention.self.key.weight";
  const Checkpoint a = made(folder, kSmall, {.seed = 1}, "a");
  const Checkpoint b = made(folder, kSmall, {.seed = 2}, "b");
  const Checkpoint again = made(folder, kSmall, {.seed = 1}, "again");
  CHECK(bytes_of(a, query) == bytes_of(again, query));
  CHECK(bytes_of(a, query) != bytes_of(b, query));
  CHECK(bytes_of(a, query) != bytes_of(a, key));
  CHECK(bytes_of(b, query) != bytes_of(a, key));
  // No two normal tensors share even the first number.
  std::set<std::string> first;
  std::size_t count = 0;
  for (const Checkpoint* checkpoint : {&a, &b}) {
    for (const TensorInfo& tensor : checkpoint->tensors()) {
      const std::string bytes = bytes_of(*checkpoint, tensor.name);
      if (tensor.shape.size() != 2 || tensor.shape[0] == 400) continue;
      first.insert(bytes.substr(0, 4));
      ++count;
    }
  }
  CHECK(count == 2 * (2 + 2 * 6 + 1));
  CHECK(first.size() == count);
}

TEST_CASE("a longer table begins like a shorter one") {
  const TempFolder folder;
  const std::string table = "bert.embeddings.word_embeddings.weight";
  std::string longer = kSmall;
  longer.replace(longer.find("400"), 3, "777");
  const std::string few = bytes_of(made(folder, kSmall, {}, "few"), table);
  const std::string many = bytes_of(made(folder, longer, {}, "many"), table);
  CHECK(few.size() == 400 * 64 * 4);
  CHECK(many.size() == 777 * 64 * 4);
  CHECK(many.substr(0, few.size()) == few);
}

TEST_CASE("every type holds the same values, each rounded once") {
  const TempFolder folder;
  const Checkpoint exact = made(folder, kSmall, {.dtype = DType::kF64}, "exact");
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    const Checkpoint rounded = made(folder, kSmall, {.dtype = dtype}, "rounded");
    CAPTURE(dtype_name(dtype));
    REQUIRE(rounded.tensors().size() == exact.tensors().size());
    std::size_t wrong = 0;
    for (const TensorInfo& tensor : exact.tensors()) {
      const auto values = values_of(exact, tensor.name);
      std::string expected(values.size() * dtype_bits(dtype) / 8, '\0');
      from_double(dtype, values, std::as_writable_bytes(std::span(expected)));
      CHECK(rounded.get(tensor.name).dtype == dtype);
      wrong += bytes_of(rounded, tensor.name) != expected;
    }
    CHECK(wrong == 0);
  }
}

/// Mean and deviation of values that should be normal, in units of their standard errors.
void check_normal(const std::vector<double>& values, double deviation) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const double x : values) sum += x;
  for (const double x : values) squares += (x - sum / n) * (x - sum / n);
  CHECK(std::abs(sum / n) < 5 * deviation / std::sqrt(n));
  CHECK(std::abs(std::sqrt(squares / n) - deviation) < 5 * deviation / std::sqrt(2 * n));
  CHECK(std::none_of(values.begin(), values.end(),
                     [&](double x) { return x == 0 || !(std::abs(x) < 7 * deviation); }));
}

/// Numbers of a tensor's values over many seeds.
struct Sample {
  double count = 0, sum = 0, squares = 0, largest = 0;

  void add(double x) {
    count += 1;
    sum += x;
    squares += x * x;
    largest = std::max(largest, std::abs(x));
  }
  double mean() const { return sum / count; }
  double deviation() const { return std::sqrt(std::max(0.0, squares / count - mean() * mean())); }
};

/// Rows that are 0 are left out and listed: "0,3" or "-".
std::pair<Sample, std::string> sample_of(const NewTensor& tensor) {
  const std::uint64_t size = element_count(tensor.shape).value();
  const std::uint64_t columns = tensor.shape.size() < 2 ? 1 : tensor.shape.back();
  const std::uint64_t rows = tensor.shape.size() < 2 ? 1 : size / columns;
  Sample sample;
  std::set<std::uint64_t> zero;
  const std::uint64_t seeds = 1 + 20000 / size;
  std::vector<double> values(size);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    fill_start(tensor.start, static_cast<Index>(columns), RandomStream(seed, tensor.name), 0,
               values);
    for (std::uint64_t row = 0; row < rows; ++row) {
      const auto own = std::span(values).subspan(row * (size / rows), size / rows);
      const bool is_zero = std::ranges::all_of(own, [](double x) { return x == 0; });
      if (is_zero && tensor.shape.size() == 2) {
        zero.insert(row);
        continue;
      }
      for (const double x : own) sample.add(x);
    }
  }
  // Of a bias of several parts all rows are.
  const bool some = !zero.empty() && zero.size() < rows;
  for (std::uint64_t i = 0; zero.size() == rows && i < size; ++i) sample.add(0);
  return {sample, some ? fmt::format("{}", fmt::join(zero, ",")) : "-"};
}

TEST_CASE("every tensor starts as in transformers") {
  std::map<std::string, NewModel> models;
  for (const Golden& golden : goldens())
    models[golden.stem] = new_model(*golden.family, ModelConfig::read(golden.config_path));
  std::size_t truncated = 0;
  std::size_t padded = 0;
  for (const Row& row : read_table(kFamilies + "/starts.tsv", 7)) {
    CAPTURE(row[0]);
    CAPTURE(row[1]);
    REQUIRE(models.contains(row[0]));
    const auto& tensors = models.at(row[0]).tensors;
    const auto found = std::ranges::find(tensors, row[1], &NewTensor::name);
    REQUIRE(found != tensors.end());
    const auto [sample, zero] = sample_of(*found);
    const double count = std::stod(row[2]);
    const double mean = std::stod(row[3]);
    const double deviation = std::stod(row[4]);
    const double largest = std::stod(row[5]);
    CHECK(zero == row[6]);
    padded += zero != "-";
    // Both are samples; the golden's numbers have four digits.
    const double near = 5 / std::sqrt(count) + 5 / std::sqrt(sample.count) + 1e-3;
    CHECK(std::abs(sample.mean() - mean) <= near * (deviation + 1e-12));
    CHECK(std::abs(sample.deviation() - deviation) <= near * deviation + 1e-9);
    if (deviation == 0) continue;
    // A cut-off shows in few values; what is not cut off lies farther out.
    const double own = sample.largest / sample.deviation();
    const bool cut = largest < 2.6;
    truncated += cut;
    CHECK((cut ? std::abs(own - largest) < 0.05 * largest : own > 2.6));
  }
  CHECK(truncated > 10);
  CHECK(padded >= 20);
}

TEST_CASE("initializer_range sets the deviation of what is normal") {
  const TempFolder folder;
  std::string config = kSmall;
  config.insert(1, "\"initializer_range\": 0.5, ");
  const Checkpoint checkpoint = made(folder, config, {});
  check_normal(values_of(checkpoint, "bert.encoder.layer.1.intermediate.dense.weight"), 0.5);
  config.replace(config.find("0.5"), 3, "null");
  check_normal(values_of(made(folder, config, {}), "bert.encoder.layer.1.output.dense.weight"),
               0.02);
}

TEST_CASE("the padded row is that of pad_token_id, and no row where that names none") {
  const TempFolder folder;
  const auto zero_rows = [&](const std::string& pad) {
    std::string config = kSmall;
    config.insert(1, "\"pad_token_id\": " + pad + ", ");
    const auto values =
        values_of(made(folder, config, {}), "bert.embeddings.word_embeddings.weight");
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < 400; ++row) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * 64);
      if (std::all_of(begin, begin + 64, [](double x) { return x == 0; })) rows.push_back(row);
    }
    return rows;
  };
  CHECK(zero_rows("0") == std::vector<std::size_t>{0});
  CHECK(zero_rows("399") == std::vector<std::size_t>{399});
  CHECK(zero_rows("400").empty());
  CHECK(zero_rows("null").empty());
  CHECK(zero_rows("-1").empty());  // "none" in some configs
}

// RoFormer's table: half of the columns are sines, then as many cosines of the same angles, which
// fall from one column to the next by the factor 10000^(2/n).
TEST_CASE("a table of sines is the one of the formula") {
  const auto all = goldens();
  for (const char* stem : {"roformer-plain", "roformer-factorised"}) {
    const TempFolder folder;
    NewCheckpointRequest request;
    request.dtype = DType::kF64;
    new_checkpoint(golden_of(all, stem).config_path, folder / "out", request);
    const Checkpoint checkpoint = open_checkpoint(folder / "out");
    const std::string name = "roformer.encoder.embed_positions.weight";
    const std::uint64_t rows = checkpoint.get(name).shape[0];
    const std::uint64_t width = checkpoint.get(name).shape[1];
    std::vector<double> expected(rows * width);
    const std::uint64_t sines = width - width / 2;
    for (std::uint64_t i = 0; i < sines; ++i) {
      const long double step = std::exp(-std::log(10000.0L) * 2 * static_cast<long double>(i) /
                                        static_cast<long double>(width));
      for (std::uint64_t p = 0; p < rows; ++p) {
        const long double angle = static_cast<long double>(p) * step;
        expected[p * width + i] = static_cast<double>(std::sin(angle));
        if (sines + i < width) {
          expected[p * width + sines + i] = static_cast<double>(std::cos(angle));
        }
      }
    }
    CAPTURE(stem);
    CHECK(far_off(values_of(checkpoint, name), expected, 1e-13, 0) == "");
  }
}

struct BadConfig {
  const char* text;
  const char* message;
};

// What "vocab_size" must not be; byte 41 is where the value begins.
const BadConfig kBadConfigs[] = {
    {"[]", "is not a JSON object, expected one"},
    {"", "byte 0: "},
    {R"({"model_type": "bert")", "byte 21: "},
    {R"({"model_type": "bert", "model_type": "bert"})", "byte 23: "},
    {"{}", "no model_type, expected one of albert, bart, "},
    {R"({"model_type": null})", "no model_type, expected one of "},
    {R"({"model_type": 7})", "no model_type, expected one of "},
    {R"({"model_type": "pegasus"})", "model_type is \"pegasus\", expected albert, bart, "},
    {R"({"model_type": "\u001b[31m"})", R"(model_type is "\x1b[31m", expected )"},
    {R"({"model_type": "bert", "vocab_size": 0})", "vocab_size is 0, expected 1 to 2147483647"},
    {R"({"model_type": "bert", "vocab_size": -1})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": 1e3})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": 5.0})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": "9"})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": true})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": [9]})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": 18446744073709551616})",
     "vocab_size (byte 37): expected a whole number"},
    {R"({"model_type": "bert", "vocab_size": 18446744073709551615})",
     "vocab_size is 18446744073709551615, expected 1 to 2147483647"},
    {R"({"model_type": "bert", "vocab_size": 2147483647, "hidden_size": 2147483640})", "too large"},
    {R"({"model_type": "bert", "hidden_size": 12, "initializer_range": "x"})",
     "initializer_range (byte 63): expected a number"},
    {R"({"model_type": "bert", "hidden_size": 12, "initializer_range": -1})",
     "initializer_range is -1, expected a number from 0"},
    {R"({"model_type": "bert", "hidden_size": 8, "pad_token_id": 1.5})",
     "pad_token_id (byte 57): expected a whole number"},
    {R"({"model_type": "gpt2", "n_layer": 0})", "n_layer is 0, expected 1 to 1000"},
    {R"({"model_type": "albert", "num_hidden_groups": 0})", "num_hidden_groups is 0, expected 1 "},
    // What a model could not run: as when it is loaded.
    {R"({"model_type": "bert", "num_attention_heads": 0})", "num_attention_heads is 0, expected 1"},
    {R"({"model_type": "bert", "num_attention_heads": 7})", "expected a divisor of hidden_size"},
    {R"({"model_type": "llama", "num_key_value_heads": 5})", "expected a divisor of num_attention"},
    {R"({"model_type": "roformer", "hidden_size": 36})", "num_attention_heads is absent"},
    {R"({"model_type": "modernbert", "initializer_cutoff_factor": 0.01})", "expected at least 0.1"},
    {R"({"model_type": "t5", "initializer_factor": -2})", "initializer_factor is -2, expected a "},
    {R"({"model_type": "xlnet", "untie_r": false})", "untie_r is false, expected true"},
    {R"({"model_type": "masque", "norm": "batch"})", "norm is \"batch\", expected one of "},
};

TEST_CASE("a bad config is refused by name and byte, and nothing is written") {
  for (const BadConfig& bad : kBadConfigs) {
    const TempFolder folder;
    write_file(folder / "bad.json", bad.text);
    const std::string message =
        message_of([&] { new_checkpoint(folder / "bad.json", folder / "out", {}); });
    CAPTURE(bad.text);
    CAPTURE(message);
    CHECK(message.starts_with(folder / "bad.json: "));
    CHECK(contains(message, bad.message));
    CHECK(message.find_first_of("\n\x1b") == std::string::npos);
    CHECK(folder.names() == Names{"bad.json"});
  }
}

TEST_CASE("a million layers are refused before they are written") {
  for (const char* layers : {"100000", "1000000", "18446744073709551615"}) {
    const TempFolder folder;
    write_file(folder / "bad.json",
               fmt::format(R"({{"model_type": "bert", "hidden_size": 1, "vocab_size": 1,
                              "num_hidden_layers": {}}})",
                           layers));
    CAPTURE(layers);
    CHECK(contains(message_of([&] { new_checkpoint(folder / "bad.json", folder / "out", {}); }),
                   "num_hidden_layers is " + std::string(layers) + ", expected 1 to 1000"));
    CHECK(folder.names() == Names{"bad.json"});
  }
}

TEST_CASE("a config that is no file, and an output without a folder to be in, are named") {
  const TempFolder folder;
  write_file(folder / "c.json", kSmall);
  const auto message = [&](const std::string& config, const std::string& out) {
    return message_of([&] { new_checkpoint(folder / config, folder / out, {}); });
  };
  CHECK(message("none.json", "out") == folder / "none.json: opening: No such file or directory");
  CHECK(contains(message(".", "out"), "is a folder, expected a regular file"));
  CHECK(message("c.json", "none/out") == folder / "none: no such folder, expected one that exists");
  CHECK(message("c.json", "c.json") == folder / "c.json: exists, expected a new folder");
  CHECK(folder.names() == Names{"c.json"});
}

TEST_CASE("a family can be named for a config without a model_type") {
  const TempFolder folder;
  write_file(folder / "c.json",
             R"({"vocab_size": 7, "n_embd": 12, "n_layer": 1, "n_head": 2, "n_positions": 3,
                 "num_hidden_layers": 1, "hidden_size": 12})");
  NewCheckpointRequest request;
  request.family = "gpt2";
  CHECK(new_checkpoint(folder / "c.json", folder / "out", request).family == "gpt2");
  CHECK(open_checkpoint(folder / "out").get("transformer.wte.weight").shape == Shape{7, 12});
  request.family = "xlm-roberta";  // a model_type counts as well
  CHECK(new_checkpoint(folder / "c.json", folder / "out2", request).family == "roberta");
  const ModelConfig config = ModelConfig::read(folder / "out2/config.json");
  CHECK(config.model_type() == "xlm-roberta");
  CHECK(config.architectures() == Names{"XLMRobertaForMaskedLM"});
}

TEST_CASE("architectures chooses the head, and names the class that has the tensors") {
  const TempFolder folder;
  struct Case {
    const char* members;
    const char* architecture;
    const char* tensor;
    std::size_t notes;
  };
  for (const Case& one : {
           Case{R"("model_type": "electra", "architectures": ["ElectraForPreTraining"])",
                "ElectraForPreTraining", "discriminator_predictions.dense_prediction.bias", 0},
           Case{R"("model_type": "electra", "is_decoder": true)", "ElectraForCausalLM",
                "generator_lm_head.bias", 0},
           Case{R"("model_type": "bert", "architectures": ["BertForPreTraining"])",
                "BertForMaskedLM", "cls.predictions.bias", 1},
           Case{R"("model_type": "bert", "is_decoder": true)", "BertLMHeadModel",
                "cls.predictions.bias", 0},
           Case{R"("model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"],
                   "num_layers": 1, "d_ff": 7, "d_kv": 2)",
                "MT5ForConditionalGeneration", "decoder.block.0.layer.1.layer_norm.weight",
                1},  // intermediate_size is not its own
           Case{R"("model_type": "mt5", "num_layers": 1, "d_ff": 7, "d_kv": 2)", "MT5EncoderModel",
                "shared.weight", 1},
           Case{R"("model_type": "xlnet", "n_layer": 1, "n_head": 2, "d_inner": 7)",
                "XLNetLMHeadModel", "lm_loss.bias", 1},
       }) {
    CAPTURE(one.members);
    write_file(folder / "c.json",
               fmt::format(R"({{{}, "vocab_size": 9, "hidden_size": 12, "num_hidden_layers": 1,
                               "intermediate_size": 7}})",
                           one.members));
    NewCheckpointRequest request;
    request.write.existing = Existing::kReplace;
    const auto result = new_checkpoint(folder / "c.json", folder / "out", request);
    CHECK(result.notes.size() == one.notes);
    CHECK(ModelConfig::read(folder / "out/config.json").architectures() == Names{one.architecture});
    CHECK(open_checkpoint(folder / "out").find(one.tensor) != nullptr);
  }
}

TEST_CASE("types that values are not rounded to are a wrong command line") {
  const TempFolder folder;
  write_file(folder / "c.json", kSmall);
  for (const DType dtype : {DType::kI32, DType::kBool, DType::kF4, DType::kF8E8M0, DType::kC64}) {
    const auto message = message_of<UsageError>(
        [&] { new_checkpoint(folder / "c.json", folder / "out", {.dtype = dtype}); });
    CHECK(message ==
          fmt::format("dtype {}: conversion to this type is not supported", dtype_name(dtype)));
  }
  CHECK(folder.names() == Names{"c.json"});
}

TEST_CASE("a folder is replaced on demand only, and only if nothing but weights is lost") {
  const TempFolder folder;
  write_file(folder / "c.json", kSmall);
  NewCheckpointRequest request;
  new_checkpoint(folder / "c.json", folder / "out", request);
  const std::string before = total_of(folder / "out");
  write_file(folder / "out/extra", "x");
  write_file(folder / "other/letter.txt", "dear");
  request.seed = 1;
  const auto message = [&](const char* out) {
    return message_of([&] { new_checkpoint(folder / "c.json", folder / out, request); });
  };
  CHECK(message("out") ==
        folder / "out: exists and is not empty, expected a new folder (force replaces it)");
  CHECK(total_of(folder / "out") == before);
  request.write.existing = Existing::kReplace;
  CHECK(message("other") ==
        folder / "other: contains 'letter.txt', which would be lost: not replaced");
  CHECK(read_file(folder / "other/letter.txt") == "dear");
  CHECK(message("out") == folder / "out: contains 'extra', which would be lost: not replaced");
  CHECK(total_of(folder / "out") == before);
  REQUIRE(::unlink((folder / "out/extra").c_str()) == 0);
  CHECK(message("out") == "(nothing thrown)");
  CHECK(total_of(folder / "out") != before);
  CHECK(names_in(folder / "out") == Names{"config.json", "model.safetensors"});
  CHECK(folder.names() == Names{"c.json", "other", "out"});
}

TEST_CASE("a config that asks for too much is named by its path") {
  const TempFolder folder;
  write_file(folder / "bad.json", R"({"model_type": "bert", "num_hidden_layers": 1000000})");
  CHECK(message_of([&] {
          new_checkpoint(folder / "bad.json", folder / "out", {});
        }).starts_with(folder / "bad.json: "));
}

TEST_CASE("a tensor that is too large is named as a file would name it") {
  const TempFolder folder;
  write_file(folder / "bad.json",
             R"({"model_type": "bert", "vocab_size": 2147483647, "hidden_size": 2147483640})");
  CHECK(contains(message_of([&] { new_checkpoint(folder / "bad.json", folder / "out", {}); }),
                 "bert.embeddings.word_embeddings.weight"));
}

TEST_CASE("a size that follows from another is not blamed in its place") {
  const TempFolder folder;
  // n_inner is 4·n_embd, which overflows: "n_inner: found 0" sends people looking for a 0.
  write_file(folder / "bad.json", R"({"model_type": "gpt2", "n_embd": 9223372036854775807})");
  CHECK_FALSE(contains(message_of([&] { new_checkpoint(folder / "bad.json", folder / "out", {}); }),
                       "found 0"));
}

TEST_CASE("a family named in place of the config's is what the message is about") {
  const TempFolder folder;
  write_file(folder / "c.json", kSmall);
  NewCheckpointRequest request;
  request.family = "nonsense";
  const auto message =
      message_of<UsageError>([&] { new_checkpoint(folder / "c.json", folder / "out", request); });
  CHECK(message.starts_with("no family 'nonsense', expected albert, bart, "));
}

}  // namespace
}  // namespace masque::model
