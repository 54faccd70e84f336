#include "surgery/positions/resize_positions.hpp"

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/near.hpp"
#include "surgery/example.hpp"
#include "surgery/positions/resize_types.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::far_off;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

constexpr std::uint64_t kWidth = 3;

/// A tensor of any type, as bytes.
struct RawTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::string bytes;
};

RawTensor raw(const std::string& name, DType dtype, Shape shape,
              const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * dtype_bits(dtype) / 8);
  from_double(dtype, values, bytes);
  return {
      name, dtype, std::move(shape), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}

RawTensor whole(const std::string& name, Shape shape, const std::vector<std::int64_t>& values) {
  std::string bytes(values.size() * 8, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, DType::kI64, std::move(shape), bytes};
}

std::string file_of(const std::vector<RawTensor>& tensors) {
  std::vector<store::TensorInfo> infos;
  std::string data;
  for (const RawTensor& tensor : tensors) {
    infos.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
    data += tensor.bytes;
  }
  return store::write_safetensors_header(infos, {{"format", "pt"}}) + data;
}

std::vector<std::int64_t> count(std::int64_t n) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i) numbers.push_back(i);
  return numbers;
}

/// A BERT or RoBERTa of 6 usable positions, with everything that knows of them.
struct Example {
  std::string family = "bert";
  std::uint64_t offset = 0;
  DType dtype = DType::kF32;
  bool prefixed = true;

  std::string prefix() const { return prefixed ? family + "." : ""; }
  std::string position_table() const { return prefix() + "embeddings.position_embeddings.weight"; }
  std::uint64_t rows() const { return 6 + offset; }
  std::vector<double> positions() const { return numbers(5, rows() * kWidth); }

  void write(const TempFolder& folder, const std::string& more_config = "") const {
    const std::string p = prefix() + "embeddings.";
    const auto n = static_cast<std::int64_t>(rows());
    write_file(
        folder / "in/model.safetensors",
        file_of({whole(p + "position_ids", {1, rows()}, count(n)),
                 whole(p + "token_type_ids", {1, rows()}, std::vector<std::int64_t>(rows(), 0)),
                 raw(position_table(), dtype, {rows(), kWidth}, positions()),
                 raw(p + "token_type_embeddings.weight", dtype, {2, kWidth}, numbers(6, 6)),
                 raw(p + "word_embeddings.weight", dtype, {4, kWidth}, numbers(7, 12))}));
    write_file(folder / "in/config.json",
               "{\"model_type\": \"" + family + "\", \"max_position_embeddings\": " +
                   std::to_string(rows()) + ", \"type_vocab_size\": 2" + more_config + "}");
    write_file(folder / "in/tokenizer_config.json", R"({"model_max_length": 6, "x": 1})");
    write_file(folder / "in/tokenizer.json",
               R"({"truncation": {"max_length": 6, "strategy": "LongestFirst"},
                   "added_tokens": [{"id": 0, "content": "[PAD]"}]})");
    write_file(folder / "in/sentence_bert_config.json", R"({"max_seq_length": 4})");
  }
};

PositionsRequest request_of(std::uint64_t positions, const std::string& how) {
  PositionsRequest request;
  request.positions = positions;
  request.how = how;
  request.write.threads = 2;
  return request;
}

double precision_of(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kF32: return 0x1p-24;
    default: return 1e-15;
  }
}

TEST_CASE("every way, with and without rows in front, in every type: rows, buffers, sizes") {
  for (const PositionExtensionInfo& info : position_extensions()) {
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
      for (const bool roberta : {false, true}) {
        CAPTURE(info.name);
        CAPTURE(dtype_name(dtype));
        CAPTURE(roberta);
        const TempFolder folder;
        Example example{roberta ? "roberta" : "bert", roberta ? 2ULL : 0ULL, dtype, roberta};
        example.write(folder);
        const auto way = info.make({});
        const std::uint64_t positions = way->most(6) < 15 ? 4 : 15;
        const auto report = resize_positions(folder / "in", folder / "out",
                                             request_of(positions, std::string(info.name)));
        CHECK(report.offset == example.offset);
        CHECK(report.positions_before == 6);
        const store::Checkpoint in = store::open_checkpoint(folder / "in");
        const store::Checkpoint out = store::open_checkpoint(folder / "out");
        const std::uint64_t rows = positions + example.offset;
        REQUIRE(out.get(example.position_table()).shape == Shape{rows, kWidth});
        const auto before = values_of(in, example.position_table());
        const auto after = values_of(out, example.position_table());
        for (std::uint64_t row = 0; row < rows; ++row) {
          std::vector<double> expected(kWidth);
          if (row < example.offset) {
            for (std::uint64_t d = 0; d < kWidth; ++d) expected[d] = before[row * kWidth + d];
          } else {
            const TableRows sum = way->row(static_cast<Index>(row - example.offset), 6,
                                           static_cast<Index>(positions));
            for (std::size_t k = 0; k < sum.count; ++k) {
              const auto stored = example.offset + static_cast<std::uint64_t>(sum.parts[k].row);
              for (std::uint64_t d = 0; d < kWidth; ++d)
                expected[d] += sum.parts[k].weight * before[stored * kWidth + d];
            }
          }
          const std::span<const double> found(&after[row * kWidth], kWidth);
          CHECK(far_off(found, expected, 1e-9, precision_of(dtype)) == "");
        }
        const std::string p = example.prefix() + "embeddings.";
        std::vector<double> ids;
        for (std::uint64_t i = 0; i < rows; ++i) ids.push_back(static_cast<double>(i));
        CHECK(values_of(out, p + "position_ids") == ids);
        CHECK(values_of(out, p + "token_type_ids") == std::vector<double>(rows, 0.0));
        CHECK(out.get(p + "token_type_ids").shape == Shape{1, rows});
        CHECK(values_of(out, p + "word_embeddings.weight") ==
              values_of(in, p + "word_embeddings.weight"));
        CHECK(contains(read_file(folder / "out/config.json"),
                       "\"max_position_embeddings\": " + std::to_string(rows) + ","));
        const std::string limit = std::to_string(positions);
        CHECK(read_file(folder / "out/tokenizer_config.json") ==
              "{\"model_max_length\": " + limit + ", \"x\": 1}");
        CHECK(contains(read_file(folder / "out/tokenizer.json"), "\"max_length\": " + limit));
        CHECK(read_file(folder / "out/sentence_bert_config.json") == R"({"max_seq_length": 4})");
      }
    }
  }
}

TEST_CASE("the padding row of the config says where positions begin") {
  const TempFolder folder;
  const Example example{"roberta", 4, DType::kF32, true};
  example.write(folder, ", \"pad_token_id\": 3");
  const auto report = resize_positions(folder / "in", folder / "out", request_of(3, "truncate"));
  CHECK(report.offset == 4);
  CHECK(store::open_checkpoint(folder / "out").get(example.position_table()).shape ==
        Shape{7, kWidth});
}

TEST_CASE("numbers that a way cannot make, and buffers that say something, are refused") {
  const TempFolder folder;
  const Example example;
  example.write(folder);
  const auto refused = [&](std::uint64_t positions, const std::string& how) {
    return message_of<UsageError>(
        [&] { resize_positions(folder / "in", folder / "out", request_of(positions, how)); });
  };
  CHECK(refused(7, "truncate") ==
        "N: found 7, expected 1 to 6 for 'truncate' and a table of 6 positions");
  CHECK(refused(37, "hierarchical") ==
        "N: found 37, expected 6 to 36 for 'hierarchical' and a table of 6 positions");
  CHECK(refused(5, "last") ==
        "N: found 5, expected 6 to any number for 'last' and a table of 6 positions; how truncate "
        "keeps the first ones");
  write_file(folder / "in/model.safetensors",
             file_of({whole("bert.embeddings.position_ids", {1, 6}, {0, 1, 2, 3, 5, 4}),
                      raw(example.position_table(), DType::kF32, {6, kWidth}, example.positions()),
                      raw("bert.embeddings.word_embeddings.weight", DType::kF32, {4, kWidth},
                          numbers(7, 12))}));
  CHECK(contains(
      message_of([&] { resize_positions(folder / "in", folder / "out", request_of(8, "last")); }),
      "expected the numbers from 0 on"));
  CHECK(folder.names() == std::vector<std::string>{"in"});
}

TEST_CASE("a row that would overflow its type is refused, in a dry run too") {
  const TempFolder folder;
  write_file(folder / "in.safetensors",
             file_of({raw("t", DType::kF16, {2, 2}, {1, -60000, 1, 60000})}));
  PositionsRequest request = request_of(4, "hierarchical");
  request.tensor = "t";
  for (const bool dry_run : {false, true}) {
    request.dry_run = dry_run;
    CHECK(contains(message_of([&] {
                     resize_positions(folder / "in.safetensors", folder / "out.safetensors",
                                      request);
                   }),
                   "row 3 would overflow F16"));
  }
  CHECK(folder.names() == std::vector<std::string>{"in.safetensors"});
}

TEST_CASE("a table of no family: named, with rows in front, a dry run writes nothing") {
  const TempFolder folder;
  write_file(folder / "in.safetensors",
             file_of({raw("t", DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6})}));
  PositionsRequest request = request_of(4, "repeat");
  request.tensor = "t";
  request.offset = 1;
  request.dry_run = true;
  resize_positions(folder / "in.safetensors", "", request);
  CHECK(folder.names() == std::vector<std::string>{"in.safetensors"});
  request.dry_run = false;
  const auto report =
      resize_positions(folder / "in.safetensors", folder / "out.safetensors", request);
  CHECK(report.notes == std::vector<std::string>{
                            "set \"max_position_embeddings\": 5 in the config.json of the output"});
  CHECK(values_of(store::open_checkpoint(folder / "out.safetensors"), "t") ==
        std::vector<double>{1, 2, 3, 4, 5, 6, 3, 4, 5, 6});
}

TEST_CASE("GPT-2's causal masks of old files follow, in every layer") {
  const TempFolder folder;
  const auto mask = [](std::uint64_t n) {
    std::string bytes;
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::uint64_t j = 0; j < n; ++j) bytes += j <= i ? '\1' : '\0';
    }
    return bytes;
  };
  write_file(folder / "in/model.safetensors",
             file_of({raw("wte.weight", DType::kF32, {2, 2}, {1, 2, 3, 4}),
                      raw("wpe.weight", DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6}),
                      {"h.0.attn.bias", DType::kBool, {1, 1, 3, 3}, mask(3)},
                      {"h.1.attn.bias", DType::kU8, {1, 1, 3, 3}, mask(3)}}));
  write_file(folder / "in/config.json", R"({"model_type": "gpt2", "n_positions": 3, "n_ctx": 3})");
  resize_positions(folder / "in", folder / "out", request_of(5, "last"));
  const store::Checkpoint out = store::open_checkpoint(folder / "out");
  for (const char* name : {"h.0.attn.bias", "h.1.attn.bias"}) {
    const store::TensorInfo& tensor = out.get(name);
    CHECK(tensor.shape == Shape{1, 1, 5, 5});
    std::string bytes(25, '\0');
    out.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
    CHECK(bytes == mask(5));
  }
  CHECK(read_file(folder / "out/config.json") ==
        R"({"model_type": "gpt2", "n_positions": 5, "n_ctx": 5})");
}

TypesRequest types_of(std::uint64_t types, std::optional<std::string> init = {}) {
  TypesRequest request;
  request.types = types;
  request.init = std::move(init);
  return request;
}

TEST_CASE("token types grow by mean, zero or a copy, and shrink") {
  const TempFolder folder;
  Example().write(folder);
  const std::string name = "bert.embeddings.token_type_embeddings.weight";
  const auto before = values_of(store::open_checkpoint(folder / "in"), name);
  const auto after = [&](const TypesRequest& request) {
    const TempFolder to;
    resize_types(folder / "in", to / "out", request);
    CHECK(contains(read_file(to / "out/config.json"),
                   "\"type_vocab_size\": " + std::to_string(request.types) + "}"));
    return values_of(store::open_checkpoint(to / "out"), name);
  };
  std::vector<double> mean(2 * kWidth);
  for (std::size_t i = 0; i < mean.size(); ++i)
    mean[i] = static_cast<float>((before[i % kWidth] + before[kWidth + i % kWidth]) / 2);
  const auto with = [&](std::vector<double> rest) {
    std::vector<double> all = before;
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  CHECK(after(types_of(4)) == with(mean));
  CHECK(after(types_of(4, "mean")) == with(mean));
  CHECK(after(types_of(3, "zero")) == with({0, 0, 0}));
  CHECK(after(types_of(3, "copy:1")) == with({before[3], before[4], before[5]}));
  CHECK(after(types_of(1)) == std::vector<double>(before.begin(), before.begin() + 3));
  CHECK(after(types_of(2)) == before);
  const auto refused = [&](const TypesRequest& request) {
    return message_of<UsageError>([&] { resize_types(folder / "in", folder / "out", request); });
  };
  CHECK(refused(types_of(3, "copy:2")) == "init copy:2: expected a token type below 2");
  CHECK(refused(types_of(3, "copy")) ==
        "init: found 'copy', expected mean, zero or copy:K with a token type K");
  CHECK(refused(types_of(1, "mean")) ==
        "init has no effect: 1 token types out of 2 need no new rows");
}

}  // namespace
}  // namespace masque::surgery
