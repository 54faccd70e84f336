// A new checkpoint has the tensors that transformers saves for the same config, filled as it fills
// them, and the same bytes for any number of threads and shards.
#include "store/new_checkpoint.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/safetensors/safetensors.hpp"
#include "store/values.hpp"
#include "support/message.hpp"
#include "support/near.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

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
  const FamilyNames* family = nullptr;
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
    golden.family = find_family_names(ModelConfig::read(golden.config_path).model_type());
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
  REQUIRE(out.size() >= 17);
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
    const auto plan = plan_tensors(*golden.family, ModelConfig::read(golden.config_path));
    CHECK(texts_of(plan) == golden.tied);
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

TEST_CASE("untying adds the decoder weight and the copies of the head, and nothing else") {
  for (const Golden& golden : goldens()) {
    const FamilyNames& family = *golden.family;
    CAPTURE(golden.stem);
    const auto shape_of = [&](std::string_view name) {
      const std::string start = with_prefix(name, family.prefix) + " ";
      for (const std::string& text : golden.tied) {
        if (text.starts_with(start)) return text.substr(start.size());
      }
      return std::string("none");
    };
    Names expected = {with_prefix(family.decoder_weight, family.prefix) + " " +
                      shape_of(family.input_table)};
    for (const HeadCopy& copy : family.head_copies) {
      expected.push_back(with_prefix(copy.name, family.prefix) + " " + shape_of(copy.source));
    }
    std::sort(expected.begin(), expected.end());
    CHECK(expected == golden.untied_only);
  }
}

TEST_CASE("every registered family has a golden config, and its names are among the tensors") {
  const auto all = goldens();
  REQUIRE(family_names().size() >= 8);
  for (const FamilyNames* family : family_names()) {
    CAPTURE(family->name);
    int seen = 0;
    for (const Golden& golden : all) {
      if (golden.family != family) continue;
      ++seen;
      CAPTURE(golden.stem);
      CHECK(has(golden.tied, with_prefix(family->input_table, family->prefix)));
      for (const std::string_view name :
           {family->position_table, family->segment_table, family->output_bias}) {
        if (!name.empty()) CHECK(has(golden.tied, with_prefix(name, family->prefix)));
      }
      for (const std::string_view name : family->head_evidence) {
        CHECK(has(golden.tied, with_prefix(name, family->prefix)));
      }
      const auto classes = ModelConfig::read(golden.config_path).architectures();
      REQUIRE(classes.size() == 1);
      CHECK(std::count(family->lm_classes.begin(), family->lm_classes.end(), classes[0]) == 1);
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

constexpr const char* kSmall = R"({"model_type": "bert", "vocab_size": 400, "hidden_size": 64,
  "num_hidden_layers": 2, "intermediate_size": 96, "max_position_embeddings": 64})";

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

TEST_CASE("every tensor is filled as its family says") {
  std::set<Init> seen;
  for (const Golden& golden : goldens()) {
    const TempFolder folder;
    NewCheckpointRequest request;
    request.dtype = DType::kF64;
    new_checkpoint(golden.config_path, folder / "out", request);
    const Checkpoint checkpoint = open_checkpoint(folder / "out");
    const ModelConfig config = ModelConfig::read(golden.config_path);
    const double range = config.number("initializer_range").value_or(0.02);
    for (const PlannedTensor& tensor : plan_tensors(*golden.family, config)) {
      CAPTURE(golden.stem);
      CAPTURE(tensor.name);
      seen.insert(tensor.init);
      std::vector<double> values = values_of(checkpoint, tensor.name);
      const auto is = [&](double x) {
        return std::all_of(values.begin(), values.end(), [&](double y) { return x == y; });
      };
      if (tensor.init == Init::kZero) CHECK(is(0));
      if (tensor.init == Init::kOne) CHECK(is(1));
      if (tensor.init == Init::kNormal) check_normal(values, range);
      if (tensor.init == Init::kResidual) {
        const double layers = static_cast<double>(config.size("n_layer").value());
        check_normal(values, range / std::sqrt(2 * layers));
      }
      if (tensor.init == Init::kPadded) {
        if (const auto pad = config.size("pad_token_id")) {
          const auto width = static_cast<std::ptrdiff_t>(tensor.shape[1]);
          const auto row = values.begin() + static_cast<std::ptrdiff_t>(*pad) * width;
          CHECK(std::all_of(row, row + width, [](double x) { return x == 0; }));
          values.erase(row, row + width);
        }
        check_normal(values, range);
      }
    }
  }
  CHECK(seen == std::set<Init>{Init::kNormal, Init::kPadded, Init::kZero, Init::kOne,
                               Init::kResidual, Init::kSinusoid});
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
    {"[]", "is no JSON object, expected one"},
    {"", "byte 0: "},
    {R"({"model_type": "bert")", "byte 21: "},
    {R"({"model_type": "bert", "model_type": "bert"})", "byte 23: "},
    {"{}", "model_type '', expected one of albert, bert, "},
    {R"({"model_type": null})", "model_type '', expected one of "},
    {R"({"model_type": 7})", "model_type '', expected one of "},
    {R"({"model_type": "t5"})", "model_type 't5', expected one of "},
    {R"({"model_type": "\u001b[31m"})", R"(model_type '\x1b[31m', expected one of )"},
    {R"({"model_type": "bert", "vocab_size": 0})", "vocab_size: found 0, expected a positive"},
    {R"({"model_type": "bert", "vocab_size": -1})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": 1e3})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": 5.0})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": "9"})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": true})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": [9]})", "vocab_size (byte 37): expected a whole"},
    {R"({"model_type": "bert", "vocab_size": 18446744073709551616})",
     "vocab_size (byte 37): expected a whole number"},
    {R"({"model_type": "bert", "vocab_size": 18446744073709551615})", "too large"},
    {R"({"model_type": "bert", "vocab_size": 4611686018427387904, "hidden_size": 1})", "too large"},
    {R"({"model_type": "bert", "vocab_size": 4294967296, "hidden_size": 4294967296})", "too large"},
    {R"({"model_type": "bert", "hidden_size": 8, "initializer_range": "x"})",
     "initializer_range (byte 62): expected a number"},
    {R"({"model_type": "bert", "hidden_size": 8, "pad_token_id": 1.5})",
     "pad_token_id (byte 57): expected a whole number"},
    {R"({"model_type": "gpt2", "n_layer": 0})", "n_layer: found 0, expected a positive number"},
    {R"({"model_type": "albert", "num_hidden_groups": 0})", "num_hidden_groups: found 0"},
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
                   "asks for more than 1000000 tensors"));
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
  CHECK(message("c.json", "none/out") ==
        folder / "none: opening folder: No such file or directory");
  CHECK(message("c.json", "c.json") == folder / "c.json: exists, expected a new folder");
  CHECK(folder.names() == Names{"c.json"});
}

TEST_CASE("a family can be named for a config without a model_type") {
  const TempFolder folder;
  write_file(folder / "c.json",
             R"({"vocab_size": 7, "n_embd": 4, "n_layer": 1, "n_positions": 3})");
  NewCheckpointRequest request;
  request.family = "gpt2";
  CHECK(new_checkpoint(folder / "c.json", folder / "out", request).family == "gpt2");
  CHECK(open_checkpoint(folder / "out").get("transformer.wte.weight").shape == Shape{7, 4});
  request.family = "xlm-roberta";  // a model_type counts as well
  CHECK(find_family_names("xlm-roberta")->name == "roberta");
  CHECK(new_checkpoint(folder / "c.json", folder / "out2", request).family == "roberta");
}

TEST_CASE("types that values are not rounded to are a wrong command line") {
  const TempFolder folder;
  write_file(folder / "c.json", kSmall);
  for (const DType dtype : {DType::kI32, DType::kBool, DType::kF4, DType::kF8E8M0, DType::kC64}) {
    const auto message = message_of<UsageError>(
        [&] { new_checkpoint(folder / "c.json", folder / "out", {.dtype = dtype}); });
    CHECK(message ==
          fmt::format("dtype {}: not a type that values are rounded to", dtype_name(dtype)));
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
        folder / "other: holds 'letter.txt', which the new folder does not: not replaced");
  CHECK(read_file(folder / "other/letter.txt") == "dear");
  CHECK(message("out") ==
        folder / "out: holds 'extra', which the new folder does not: not replaced");
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
             R"({"model_type": "bert", "vocab_size": 4611686018427387904, "hidden_size": 1})");
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
  CHECK_FALSE(
      contains(message_of([&] { new_checkpoint(folder / "c.json", folder / "out", request); }),
               "model_type"));
}

}  // namespace
}  // namespace masque::store
