// Conversion changes what it is requested to change, rounds once, and keeps every other byte.
#include "surgery/convert/convert_checkpoint.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/sharding.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {
namespace {

using namespace store;  // NOLINT(google-build-using-namespace): what is converted

using test::contains;
using test::make_safetensors;
using test::message_of;
using test::names_in;
using test::read_file;
using test::SmallTensor;
using test::TempFolder;
using test::write_file;

using Names = std::vector<std::string>;

constexpr const char* kPt = R"({"format":"pt"})";
const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

SmallTensor floats(const std::string& name, const std::vector<float>& values) {
  return {name, "F32", {values.size()}, raw(values)};
}

/// A file of tensors that are no floating-point numbers, or are but opaque.
std::vector<SmallTensor> untouchables() {
  return {{"bool", "BOOL", {3}, std::string("\1\0\1", 3)},
          {"u8", "U8", {4}, random_bytes(1, 4)},
          {"i8", "I8", {2, 2}, random_bytes(2, 4)},
          {"i16", "I16", {3}, random_bytes(3, 6)},
          {"u16", "U16", {3}, random_bytes(4, 6)},
          {"i32", "I32", {2}, random_bytes(5, 8)},
          {"u32", "U32", {2}, random_bytes(6, 8)},
          {"i64", "I64", {2}, random_bytes(7, 16)},
          {"u64", "U64", {2}, random_bytes(8, 16)},
          {"c64", "C64", {2}, random_bytes(9, 16)},
          {"f4", "F4", {3, 2}, random_bytes(10, 3)},
          {"f6", "F6_E2M3", {4}, random_bytes(11, 3)},
          {"none", "I32", {0, 7}, ""}};
}

struct Conversion {
  TempFolder folder;
  ConvertRequest request;

  Conversion() { request.write.threads = 3; }

  void input(const std::vector<SmallTensor>& tensors, const std::string& metadata = kPt) {
    write_file(folder / "in.safetensors", make_safetensors(tensors, metadata));
  }
  ConvertResult run(const std::string& in, const std::string& out) {
    return convert_checkpoint(folder / in, folder / out, request);
  }
  std::string refusal(const std::string& in, const std::string& out) {
    return message_of([&] { run(in, out); });
  }
  /// The input converted to this type.
  Checkpoint to(DType dtype) {
    request.dtype = dtype;
    run("in.safetensors", "out.safetensors");
    return open_checkpoint(folder / "out.safetensors");
  }
};

/// One value rounded to a type, by itself: the code, and what it stands for.
struct Rounded {
  std::string bytes;
  double value;
};

const NumberFormat& format_of(DType dtype) {
  switch (dtype) {
    case DType::kF16: return kF16;
    case DType::kBF16: return kBF16;
    case DType::kF8E4M3: return kF8E4M3;
    default: return kF8E5M2;
  }
}

Rounded rounded(DType dtype, double value) {
  if (dtype == DType::kF64) return {raw<double>({value}), value};
  if (dtype == DType::kF32) {
    const auto narrow = static_cast<float>(value);
    return {raw<float>({narrow}), narrow};
  }
  const std::uint32_t code = encode_number(value, format_of(dtype));
  const std::string bytes = raw<std::uint32_t>({code}).substr(0, dtype_bits(dtype) / 8);
  return {bytes, decode_number(code, format_of(dtype))};
}

constexpr DType kTargets[] = {DType::kF64,  DType::kF32,    DType::kF16,
                              DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};

TEST_CASE("every number is rounded as it would be by itself") {
  Conversion c;
  auto values = normal_values(1, 300000, 0.1);  // more than two chunks of work
  for (double x : {0.0, -0.0, 1.0, 256.0, -240.0, 1.00390625, 1.01171875, 1e-40, -5.9e-8, 2e-3}) {
    values.push_back(x);
  }
  const auto narrowed = [&](auto zero) {
    return std::vector<decltype(zero)>(values.begin(), values.end());
  };
  c.input({{"f64", "F64", {values.size()}, raw(values)},
           {"f32", "F32", {values.size()}, raw(narrowed(0.0F))}});
  for (const DType dtype : kTargets) {
    const Checkpoint out = c.to(dtype);
    for (const char* name : {"f64", "f32"}) {
      std::string expected;
      for (const double x : values) {
        expected += rounded(dtype, name[1] == '3' ? double{static_cast<float>(x)} : x).bytes;
      }
      CAPTURE(dtype_name(dtype));
      CAPTURE(name);
      CHECK(out.get(name).dtype == dtype);
      CHECK((bytes_of(out, name) == expected));
    }
  }
}

TEST_CASE("infinity, NaN and the signs of zero stay what they are where the type has them") {
  Conversion c;
  c.input({floats("x", {kInf, -kInf, kNan, 0.0F, -0.0F})});
  for (const DType dtype : {DType::kF64, DType::kF16, DType::kBF16, DType::kF8E5M2}) {
    const Checkpoint out = c.to(dtype);
    const auto values = values_of(out, "x");
    CAPTURE(dtype_name(dtype));
    CHECK(values[0] == kInf);
    CHECK(values[1] == -kInf);
    CHECK(std::isnan(values[2]));
    CHECK((values[3] == 0 && !std::signbit(values[3])));
    CHECK((values[4] == 0 && std::signbit(values[4])));
  }
}

TEST_CASE("every code of a small type is written as its value") {
  for (const auto& entry : {std::tuple{"F16", DType::kF16, 2U},
                            {"BF16", DType::kBF16, 2U},
                            {"F8_E4M3", DType::kF8E4M3, 1U},
                            {"F8_E5M2", DType::kF8E5M2, 1U}}) {
    const auto& name = std::get<0>(entry);
    const auto& dtype = std::get<1>(entry);
    const auto& bytes = std::get<2>(entry);
    Conversion c;
    std::string codes;
    const std::uint32_t count = bytes == 2 ? 65536 : 256;
    for (std::uint32_t code = 0; code < count; ++code) {
      codes += raw<std::uint32_t>({code}).substr(0, bytes);
    }
    c.input({{"x", name, {count}, codes}});
    for (const DType wide : {DType::kF32, DType::kF64}) {
      const auto values = values_of(c.to(wide), "x");
      std::size_t wrong = 0;
      for (std::uint32_t code = 0; code < count; ++code) {
        const double expected = decode_number(code, format_of(dtype));
        wrong += !(values[code] == expected || (std::isnan(values[code]) && std::isnan(expected)));
      }
      CAPTURE(name);
      CHECK(wrong == 0);
    }
    // And back: the same codes, but that NaN is one code.
    c.request.dtype = dtype;
    c.run("out.safetensors", "back.safetensors");
    const std::string back = bytes_of(open_checkpoint(c.folder / "back.safetensors"), "x");
    std::size_t wrong = 0;
    for (std::uint32_t code = 0; code < count; ++code) {
      const bool same = back.substr(code * bytes, bytes) == codes.substr(code * bytes, bytes);
      wrong += !same && !std::isnan(decode_number(code, format_of(dtype)));
    }
    CHECK(wrong == 0);
    CHECK(std::isnan(decoded(dtype, back)[dtype == DType::kF8E4M3 ? 0x7F : count / 2 - 1]));
  }
}

TEST_CASE("what is no floating-point number is copied to the bit") {
  Conversion c;
  auto tensors = untouchables();
  tensors.push_back(floats("float", {1, 2}));
  c.input(tensors);
  c.request.dtype = DType::kF16;
  const auto result = c.run("in.safetensors", "out.safetensors");
  CHECK(result.tensors == tensors.size());
  CHECK(result.converted == 1);
  CHECK(result.files == 1);
  const Checkpoint out = open_checkpoint(c.folder / "out.safetensors");
  CHECK(out.tensors().size() == tensors.size());
  for (const SmallTensor& tensor : untouchables()) {
    CAPTURE(tensor.name);
    CHECK(dtype_name(out.get(tensor.name).dtype) == tensor.dtype);
    CHECK(out.get(tensor.name).shape == tensor.shape);
    CHECK(bytes_of(out, tensor.name) == tensor.bytes);
  }
}

TEST_CASE("a value that the type cannot hold is refused, and nothing is written") {
  // The last that rounds down to the largest number, and the first that does not.
  struct Edge {
    DType dtype;
    float good;
    float largest;
    float bad;
  };
  for (const Edge& edge : {Edge{DType::kF16, 65519.996F, 65504, 65520},
                           {DType::kBF16, 0x1.FEFFFEp127F, 0x1.FEp127F, 0x1.FFp127F},
                           {DType::kF8E4M3, 464, 448, 465},
                           {DType::kF8E5M2, 61439.996F, 57344, 61440}}) {
    for (const float sign : {1.0F, -1.0F}) {
      Conversion c;
      CAPTURE(dtype_name(edge.dtype));
      c.input({floats("good", {sign * edge.good, kInf, kNan, 1})});
      if (edge.dtype != DType::kF8E4M3) {  // which has no infinity
        CHECK(values_of(c.to(edge.dtype), "good")[0] == sign * edge.largest);
      }
      c.input({floats("also good", {1}), floats("first\n", std::vector<float>(200000, 1)),
               floats("bad", {1, sign * edge.bad})});
      c.request.dtype = edge.dtype;
      write_file(c.folder / "out.safetensors", "old");
      const std::string message =
          fmt::format("{}: tensor 'bad': values overflow {} (saturate clips them)",
                      c.folder / "in.safetensors", dtype_name(edge.dtype));
      CHECK(c.refusal("in.safetensors", "out.safetensors") == message);
      CHECK(c.refusal("in.safetensors", "folder") == message);
      CHECK(read_file(c.folder / "out.safetensors") == "old");
      CHECK(c.folder.names() == Names{"in.safetensors", "out.safetensors"});
      c.request.overflow = OverflowPolicy::kSaturate;
      CHECK(values_of(c.to(edge.dtype), "bad") ==
            std::vector<double>{1, double{sign * edge.largest}});
    }
  }
}

TEST_CASE("an infinity is a value that a type without one cannot hold") {
  Conversion c;
  c.input({floats("x", {1, -kInf, kNan})});
  c.request.dtype = DType::kF8E4M3;
  CHECK(contains(c.refusal("in.safetensors", "out.safetensors"), "tensor 'x': values overflow"));
  CHECK(c.folder.names() == Names{"in.safetensors"});
  c.request.overflow = OverflowPolicy::kSaturate;
  const auto values = values_of(c.to(DType::kF8E4M3), "x");
  CHECK((values[0] == 1 && values[1] == -448 && std::isnan(values[2])));
}

TEST_CASE("of several tensors that overflow the same one is named by any number of threads") {
  Conversion c;
  std::vector<SmallTensor> tensors;
  for (int i = 20; i >= 10; --i) {
    tensors.push_back(floats(fmt::format("t{}", i), {static_cast<float>(i % 3), 1e6F}));
  }
  c.input(tensors);
  c.request.dtype = DType::kF16;
  for (const int threads : {1, 2, 8}) {
    c.request.write.threads = threads;
    CHECK(contains(c.refusal("in.safetensors", "out.safetensors"), "tensor 't10'"));
  }
}

TEST_CASE("F64 values beyond F32 are refused or saturated too") {
  Conversion c;
  c.input({{"x", "F64", {3}, raw<double>({1e39, -1e300, 0.5})}});
  c.request.dtype = DType::kF32;
  CHECK(
      contains(c.refusal("in.safetensors", "out.safetensors"), "tensor 'x': values overflow F32"));
  c.request.overflow = OverflowPolicy::kSaturate;
  const double largest = std::numeric_limits<float>::max();
  CHECK(values_of(c.to(DType::kF32), "x") == std::vector<double>{largest, -largest, 0.5});
}

TEST_CASE("there and back is the same bytes where the type between can hold the values") {
  Conversion c;
  std::vector<float> values;
  for (const double x : normal_values(3, 5000, 0.02)) {
    values.push_back(static_cast<float>(rounded(DType::kBF16, x).value));
  }
  c.input({{"a", "F32", {50, 100}, raw(values)}});
  for (const DType between : {DType::kBF16, DType::kF64}) {
    c.request.dtype = between;
    c.run("in.safetensors", "between.safetensors");
    c.request.dtype = DType::kF32;
    c.run("between.safetensors", "out.safetensors");
    CHECK((read_file(c.folder / "out.safetensors") == read_file(c.folder / "in.safetensors")));
  }
  // Through F16 the rounded values come back.
  c.request.dtype = DType::kF16;
  c.run("in.safetensors", "between.safetensors");
  c.request.dtype = DType::kF32;
  c.run("between.safetensors", "out.safetensors");
  const auto back = values_of(open_checkpoint(c.folder / "out.safetensors"), "a");
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(back[i] == rounded(DType::kF16, values[i]).value);
  }
}

/// A folder with a small BERT, a tokenizer, a sub-folder and odd modes.
void write_model(const TempFolder& folder) {
  std::vector<SmallTensor> tensors;
  std::uint64_t seed = 0;
  const auto add = [&](const char* name, std::vector<std::uint64_t> shape) {
    std::vector<double> numbers(element_count(shape).value());
    RandomStream(++seed, "model").normal(0, numbers.size(), numbers.data());
    tensors.push_back(
        {name, "F32", std::move(shape), raw(std::vector<float>(numbers.begin(), numbers.end()))});
  };
  add("bert.embeddings.LayerNorm.weight", {12});
  add("bert.embeddings.position_embeddings.weight", {9, 12});
  add("bert.embeddings.word_embeddings.weight", {50, 12});
  add("bert.encoder.layer.0.attention.self.key.weight", {12, 12});
  add("bert.encoder.layer.0.attention.self.query.weight", {12, 12});
  add("bert.encoder.layer.0.intermediate.dense.bias", {20});
  add("bert.encoder.layer.0.intermediate.dense.weight", {20, 12});
  add("bert.encoder.layer.0.output.dense.weight", {12, 20});
  add("cls.predictions.bias", {50});
  write_file(folder / "model/model.safetensors", make_safetensors(tensors, kPt));
  write_file(folder / "model/config.json", R"({"model_type": "bert", "vocab_size": 50})");
  write_file(folder / "model/vocab.txt", "[PAD]\n[MASK]\n");
  write_file(folder / "model/sub/deep/run.sh", "#!/bin/sh\n");
  write_file(folder / "model/.hidden", "");
  REQUIRE(::chmod((folder / "model/vocab.txt").c_str(), 0600) == 0);
  REQUIRE(::chmod((folder / "model/sub/deep/run.sh").c_str(), 0750) == 0);
  REQUIRE(::chmod((folder / "model/model.safetensors").c_str(), 0640) == 0);
}

mode_t mode_of(const std::string& path) {
  struct stat info = {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

TEST_CASE("a folder in shards and merged again is the same, file by file") {
  const mode_t mask = ::umask(022);
  Conversion c;
  write_model(c.folder);
  for (const std::uint64_t size : {1U, 500U, 2000U, 5000U}) {
    c.request.shard_bytes = size;
    const auto result = c.run("model", "sharded");
    CAPTURE(size);
    CHECK(result.converted == 0);
    CHECK(result.files > 1);
    const Checkpoint sharded = open_checkpoint(c.folder / "sharded");
    CHECK(sharded.files().size() == result.files);
    CHECK(sharded.notes().empty());
    c.request.shard_bytes.reset();
    CHECK(c.run("sharded", "merged").files == 1);
    CHECK(names_in(c.folder / "merged") == names_in(c.folder / "model"));
    for (const char* name :
         {"model.safetensors", "config.json", "vocab.txt", ".hidden", "sub/deep/run.sh"}) {
      CAPTURE(name);
      CHECK((read_file(c.folder / "merged" + "/" + name) ==
             read_file(c.folder / "model" + "/" + name)));
      CHECK(mode_of(c.folder / "merged" + "/" + name) == mode_of(c.folder / "model" + "/" + name));
    }
    CHECK(mode_of(c.folder / "sharded" + "/" + sharded.files()[0].name) == 0640);
    // From the index and into one file: the same bytes again.
    c.run("sharded/model.safetensors.index.json", "one.safetensors");
    CHECK((read_file(c.folder / "one.safetensors") ==
           read_file(c.folder / "model/model.safetensors")));
    c.request.write.existing = Existing::kReplace;
  }
  ::umask(mask);
}

TEST_CASE("the shards of a folder are not carried along as other files") {
  Conversion c;
  write_model(c.folder);
  c.request.shard_bytes = 2000;
  const auto many = c.run("model", "many");
  c.request.shard_bytes = 5000;
  const auto few = c.run("many", "few");
  CHECK(few.files < many.files);
  CHECK(few.files > 1);
  std::size_t weights = 0;
  for (const std::string& name : names_in(c.folder / "few")) {
    weights += name.ends_with(".safetensors");
  }
  CHECK(weights == few.files);
  CHECK(compare_checkpoints(open_checkpoint(c.folder / "model"), open_checkpoint(c.folder / "few"),
                            {})
            .empty());
}

TEST_CASE("a folder whose weights have another name gets the usual one") {
  Conversion c;
  c.input({floats("a", {1, 2})});
  write_file(c.folder / "m/weights.safetensors", read_file(c.folder / "in.safetensors"));
  write_file(c.folder / "m/notes", "n");
  c.run("m", "out");
  CHECK(names_in(c.folder / "out") == Names{"model.safetensors", "notes"});
  CHECK(read_file(c.folder / "out/model.safetensors") == read_file(c.folder / "in.safetensors"));
}

TEST_CASE("a file becomes a folder of its weights alone") {
  Conversion c;
  c.input({floats("a", {1, 2})});
  write_file(c.folder / "config.json", "{}");
  c.run("in.safetensors", "out");
  CHECK(names_in(c.folder / "out") == Names{"model.safetensors"});
}

Names names_of(const std::string& path) {
  Names names;
  const Checkpoint checkpoint = open_checkpoint(path);
  for (const TensorInfo& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

TEST_CASE("tensors that are in no special order keep it") {
  Conversion c;
  c.input({floats("c", {1, 1}),
           floats("a", {2, 2, 2}),
           {"i", "I64", {1}, random_bytes(1, 8)},
           floats("b", {3})});
  c.run("in.safetensors", "out.safetensors");
  CHECK(names_of(c.folder / "out.safetensors") == Names{"c", "a", "i", "b"});
  CHECK(names_of((c.to(DType::kBF16), c.folder / "out.safetensors")) == Names{"c", "a", "i", "b"});
  c.request.dtype.reset();
  c.request.shard_bytes = 21;
  c.run("in.safetensors", "sharded");
  CHECK(names_of(c.folder / "sharded") == Names{"c", "a", "i", "b"});
}

TEST_CASE("tensors in the order of the reference writer are sorted for their new types") {
  Conversion c;
  c.input({{"d", "F64", {1}, raw<double>({1})},
           floats("b", {1}),
           floats("c", {1}),
           {"a", "F16", {1}, random_bytes(1, 2)}});
  c.run("in.safetensors", "out.safetensors");
  CHECK(names_of(c.folder / "out.safetensors") == Names{"d", "b", "c", "a"});
  CHECK(names_of((c.to(DType::kBF16), c.folder / "out.safetensors")) == Names{"a", "b", "c", "d"});
}

TEST_CASE("metadata is kept, and that of shards merged with a word where they differ") {
  Conversion c;
  c.input({floats("a", {1})}, R"({"format":"tf","z":"1","é\n":"2"})");
  c.run("in.safetensors", "out.safetensors");
  const auto metadata = [&] {
    return open_checkpoint(c.folder / "out.safetensors").files()[0].content.metadata;
  };
  CHECK(metadata() == Metadata{{"format", "tf"}, {"z", "1"}, {"é\n", "2"}});

  write_file(c.folder / "m/x.safetensors",
             make_safetensors({floats("a", {1})}, R"({"both":"1","format":"pt","only x":"3"})"));
  write_file(c.folder / "m/y.safetensors",
             make_safetensors({floats("b", {1})}, R"({"both":"2","format":"pt","only y":"4"})"));
  write_file(c.folder / "m/model.safetensors.index.json",
             R"({"weight_map": {"b": "y.safetensors", "a": "x.safetensors"}})");
  const auto result = c.run("m", "out.safetensors");
  CHECK(metadata() == Metadata{{"both", "1"}, {"format", "pt"}, {"only x", "3"}, {"only y", "4"}});
  CHECK(result.notes == Names{"metadata 'both' differs between files: the first one is kept"});
}

TEST_CASE("of config.json only the name of the type changes") {
  struct Config {
    const char* before;
    const char* after;
  };
  for (const Config& config :
       {Config{"{ \"dtype\":\"float32\" ,\t\"x\": 1.0e0 }\n\n",
               "{ \"dtype\":\"bfloat16\" ,\t\"x\": 1.0e0 }\n\n"},
        {"{\n  \"a\": \"\\u0041\",\n  \"torch_dtype\": \"float16\"\n}",
         "{\n  \"a\": \"\\u0041\",\n  \"torch_dtype\": \"bfloat16\"\n}"},
        {"{\"torch_dtype\": \"bfloat16\"}", "{\"torch_dtype\": \"bfloat16\"}"},
        {"{\"torch_dtype\": null}", "{\"torch_dtype\": null}"},
        {"{\"sub\": {\"dtype\": \"float32\"}}", "{\"sub\": {\"dtype\": \"float32\"}}"},
        {"{}", "{}"}}) {
    Conversion c;
    c.input({floats("a", {1})});
    write_file(c.folder / "m/model.safetensors", read_file(c.folder / "in.safetensors"));
    write_file(c.folder / "m/config.json", config.before);
    c.request.dtype = DType::kBF16;
    c.run("m", "out");
    CHECK(read_file(c.folder / "out/config.json") == config.after);
    CHECK(read_file(c.folder / "m/config.json") == config.before);
    // Without a new type it is a copy.
    c.request.dtype.reset();
    c.run("m", "copy");
    CHECK(read_file(c.folder / "copy/config.json") == config.before);
  }
}

TEST_CASE("every type has its name in config.json") {
  for (const auto& [dtype, name] : {std::pair{DType::kF64, "float64"},
                                    {DType::kF32, "float32"},
                                    {DType::kF16, "float16"},
                                    {DType::kBF16, "bfloat16"},
                                    {DType::kF8E4M3, "float8_e4m3fn"},
                                    {DType::kF8E5M2, "float8_e5m2"}}) {
    Conversion c;
    c.input({floats("a", {1})});
    write_file(c.folder / "m/model.safetensors", read_file(c.folder / "in.safetensors"));
    write_file(c.folder / "m/config.json", R"({"dtype": "other"})");
    c.request.dtype = dtype;
    c.run("m", "out");
    CHECK(read_file(c.folder / "out/config.json") == fmt::format(R"({{"dtype": "{}"}})", name));
  }
}

TEST_CASE("a folder is replaced on demand only, and only if nothing but weights is lost") {
  Conversion c;
  c.input({floats("a", {1})});
  write_file(c.folder / "letters/dear", "x");
  write_file(c.folder / "old/model.safetensors", "old");
  write_file(c.folder / "old/more", "x");
  write_file(c.folder / "empty/x", "");
  REQUIRE(::unlink((c.folder / "empty/x").c_str()) == 0);
  CHECK(c.refusal("in.safetensors", "old") ==
        c.folder / "old: exists and is not empty, expected a new folder (force replaces it)");
  CHECK(read_file(c.folder / "old/model.safetensors") == "old");
  CHECK(c.refusal("in.safetensors", "empty") == "(nothing thrown)");
  c.request.write.existing = Existing::kReplace;
  CHECK(c.refusal("in.safetensors", "letters") ==
        c.folder / "letters: contains 'dear', which would be lost: not replaced");
  CHECK(names_in(c.folder / "letters") == Names{"dear"});
  CHECK(c.refusal("in.safetensors", "old") ==
        c.folder / "old: contains 'more', which would be lost: not replaced");
  CHECK(read_file(c.folder / "old/model.safetensors") == "old");
  REQUIRE(::rename((c.folder / "old/more").c_str(), (c.folder / "old/x.safetensors").c_str()) == 0);
  CHECK(c.refusal("in.safetensors", "old") == "(nothing thrown)");
  CHECK(names_in(c.folder / "old") == Names{"model.safetensors"});
  CHECK(c.refusal("in.safetensors", "in.safetensors/sub") ==
        c.folder / "in.safetensors: not a folder");
  CHECK(c.folder.names() == Names{"empty", "in.safetensors", "letters", "old"});
}

TEST_CASE("a folder is not replaced by its own conversion, a file is") {
  Conversion c;
  write_model(c.folder);
  const std::string before = read_file(c.folder / "model/model.safetensors");
  c.request.write.existing = Existing::kReplace;
  c.request.dtype = DType::kF16;
  CHECK(c.refusal("model", "model") == c.folder / "model: is or contains the input: not replaced");
  CHECK(contains(c.refusal("model/model.safetensors", "model"), "is or contains the input"));
  CHECK((read_file(c.folder / "model/model.safetensors") == before));
  c.input({floats("a", {1.5F})});
  c.run("in.safetensors", "in.safetensors");
  CHECK(open_checkpoint(c.folder / "in.safetensors").get("a").dtype == DType::kF16);
  CHECK(c.folder.names() == Names{"in.safetensors", "model"});
}

TEST_CASE("a header with a field that would be lost is not converted") {
  Conversion c;
  std::string file = make_safetensors({{"a", "U8", {1}, "x"}}, kPt);
  const std::string_view field = R"("dtype":"U8")";
  const std::string_view odd = R"("kind":"U","dtype":"U8")";
  file.replace(file.find(field), field.size(), odd);
  file[0] = static_cast<char>(file[0] + static_cast<char>(odd.size() - field.size()));
  write_file(c.folder / "in.safetensors", file);
  REQUIRE(open_checkpoint(c.folder / "in.safetensors").notes().size() == 1);
  CHECK(c.refusal("in.safetensors", "out.safetensors") ==
        c.folder / "in.safetensors: 'kind' is not a field of safetensors and would be lost");
  CHECK(c.folder.names() == Names{"in.safetensors"});
}

TEST_CASE("requests that contradict themselves are a wrong command line") {
  Conversion c;
  c.input({floats("a", {1})});
  const auto message = [&](const char* out) {
    return message_of<UsageError>([&] { c.run("in.safetensors", out); });
  };
  for (const DType dtype : {DType::kI32, DType::kBool, DType::kC64, DType::kF4, DType::kF8E8M0}) {
    c.request.dtype = dtype;
    CHECK(message("out") ==
          fmt::format("dtype {}: conversion to this type is not supported", dtype_name(dtype)));
  }
  c.request.dtype.reset();
  c.request.shard_bytes = 100;
  CHECK(contains(message("out.safetensors"), "shard_size needs an output folder, found the file "));
  CHECK(c.folder.names() == Names{"in.safetensors"});
}

TEST_CASE("an empty checkpoint is converted to an empty one") {
  Conversion c;
  c.input({});
  const auto result = c.run("in.safetensors", "out");
  CHECK(result.tensors == 0);
  CHECK(result.files == 1);
  CHECK(open_checkpoint(c.folder / "out").tensors().empty());
  CHECK(open_checkpoint(c.folder / "out").files()[0].content.metadata ==
        Metadata{{"format", "pt"}});
}

TEST_CASE("the bytes do not depend on the number of threads") {
  Conversion c;
  const auto values = normal_values(9, 700001, 1);
  c.input({{"a", "F64", {values.size()}, raw(values)}, floats("b", {1, 2, 3})});
  std::string first;
  for (const int threads : {1, 2, 5}) {
    c.request.write.threads = threads;
    c.request.dtype = DType::kF8E4M3;
    c.run("in.safetensors", "out.safetensors");
    const std::string bytes = read_file(c.folder / "out.safetensors");
    if (first.empty()) first = bytes;
    CHECK((bytes == first));
  }
  CHECK(first.size() > 700001);
}

TEST_CASE("a value beyond the largest of an FNUZ type is refused like any other") {
  Conversion c;
  c.input({floats("x", {1000})});
  c.request.dtype = DType::kF8E4M3Fnuz;
  std::string message;
  try {
    message = c.refusal("in.safetensors", "out.safetensors");
  } catch (const UsageError& error) {  // or the type is not offered at all
    message = "overflow";
  }
  CHECK(contains(message, "overflow"));
}

TEST_CASE("a config.json that names the type twice follows in both places") {
  Conversion c;
  c.input({floats("a", {1})});
  write_file(c.folder / "m/model.safetensors", read_file(c.folder / "in.safetensors"));
  write_file(c.folder / "m/config.json", R"({"dtype": "float32", "torch_dtype": "float32"})");
  c.request.dtype = DType::kF16;
  c.run("m", "out");
  CHECK(read_file(c.folder / "out/config.json") ==
        R"({"dtype": "float16", "torch_dtype": "float16"})");
}

TEST_CASE("a config.json that is edited keeps its mode") {
  const mode_t mask = ::umask(022);
  Conversion c;
  write_model(c.folder);
  write_file(c.folder / "model/config.json", R"({"dtype": "float32"})");
  REQUIRE(::chmod((c.folder / "model/config.json").c_str(), 0600) == 0);
  c.request.dtype = DType::kF16;
  c.run("model", "out");
  CHECK(mode_of(c.folder / "out/config.json") == 0600);
  ::umask(mask);
}

TEST_CASE("shards that nothing names do not stand in the way of new ones") {
  Conversion c;
  c.input({floats("a", {1}), floats("b", {1})});
  write_file(c.folder / "m/model.safetensors", read_file(c.folder / "in.safetensors"));
  write_file(c.folder / "m/model-00001-of-00002.safetensors", "left over");
  c.request.shard_bytes = 4;
  CHECK(c.refusal("m", "out") == "(nothing thrown)");
}

}  // namespace
}  // namespace masque::surgery
