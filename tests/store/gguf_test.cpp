// GGUF files: what the gguf package wrote reads as what it is and is written as it was.
#include <array>
#include <set>
#include <span>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "support/gguf_oracle.hpp"
#include "support/make_gguf.hpp"
#include "support/message.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::gguf_tensor;
using test::gguf_value;
using test::make_gguf;
using test::message_of;
using test::names_in;
using test::read_file;
using test::read_table;
using test::Row;
using test::TempFolder;
using test::u32;
using test::write_file;
using test::wrong_gguf;

const std::string kGood = MASQUE_TEST_DATA "/gguf/good";

std::vector<std::string> good_files() {
  std::vector<std::string> names = names_in(kGood);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".gguf"); });
  REQUIRE(names.size() >= 6);
  return names;
}

std::string hash_of(const Checkpoint& checkpoint, const std::string& name) {
  if (const OpaqueTensor* opaque = checkpoint.find_opaque(name))
    return opaque_hash(checkpoint, *opaque, HashKind::kSha256);
  return tensor_hash(checkpoint, checkpoint.get(name), HashKind::kSha256);
}

TEST_CASE("files of the gguf package list their tensors with type, shape, place and bytes") {
  std::size_t plain = 0;
  std::size_t quantised = 0;
  for (const std::string& name : good_files()) {
    const Checkpoint checkpoint = open_checkpoint(kGood + "/" + name);
    CHECK(checkpoint.notes().empty());
    std::size_t rows = 0;
    for (const Row& row : read_table(kGood + "/tensors.tsv", 6)) {
      if (row[0] != name) continue;
      ++rows;
      CAPTURE(row[1]);
      const OpaqueTensor* opaque = checkpoint.find_opaque(row[1]);
      const TensorInfo* tensor = checkpoint.find(row[1]);
      REQUIRE((opaque == nullptr) != (tensor == nullptr));
      CHECK((opaque == nullptr ? dtype_name(tensor->dtype) : opaque->type) == row[2]);
      CHECK(shape_text(opaque == nullptr ? tensor->shape : opaque->shape) == row[3]);
      CHECK(std::to_string(opaque == nullptr ? tensor->begin : opaque->begin) == row[4]);
      CHECK(hash_of(checkpoint, row[1]) == row[5]);
      ++(opaque == nullptr ? plain : quantised);
    }
    CHECK(rows == checkpoint.tensors().size() + checkpoint.opaque().size());
  }
  CHECK(plain > 30);
  CHECK(quantised > 25);
}

/// The value of a row of metadata.tsv as ckpt ls shows it as JSON.
std::string shown(const std::string& type, const std::string& json) {
  const JsonValue value = parse_json_file(json, "metadata.tsv");
  const auto one = [&](const JsonValue& item) {
    const std::string text = json.substr(item.begin, item.end - item.begin);
    if (type == "FLOAT32" && text == "\"nan\"") return std::string("null");
    return type.starts_with("FLOAT32") ? fmt::format("{}", static_cast<float>(*item.number()))
                                       : text;
  };
  if (!type.ends_with("[]")) return one(value);
  std::string first;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, value.items.size()); ++i)
    first += fmt::format("{}{}", i == 0 ? "" : ",", one(value.items[i]));
  return fmt::format(R"({{"count":{},"first":[{}]}})", value.items.size(), first);
}

TEST_CASE("files of the gguf package keep their metadata in order, with types") {
  std::set<std::string> types;
  for (const std::string& name : good_files()) {
    const Checkpoint checkpoint = open_checkpoint(kGood + "/" + name);
    const FileContent& content = checkpoint.files().front().content;
    std::size_t at = 0;
    for (const Row& row : read_table(kGood + "/metadata.tsv", 4)) {
      if (row[0] != name) continue;
      CAPTURE(row[1]);
      REQUIRE(at < content.typed.size());
      const TypedValue& value = content.typed[at++];
      CHECK(value.key == row[1]);
      CHECK(value.type == row[2]);
      if (value.type == "STRING") {
        CHECK(value.json.empty());
        CHECK(quote_json(value.text) == row[3]);
        CHECK(*find_metadata(content.metadata, value.key) == value.text);
      } else {
        CHECK(value.json == shown(row[2], row[3]));
      }
      types.insert(value.type);
    }
    CHECK(at == content.typed.size());
  }
  CHECK(types.size() == 24);
}

TEST_CASE("what is read and written again are the same bytes") {
  const TempFolder folder;
  for (const std::string& name : good_files()) {
    CAPTURE(name);
    surgery::convert_checkpoint(kGood + "/" + name, folder / name, {});
    const std::string written = read_file(folder / name);
    const std::string original = read_file(kGood + "/" + name);
    if (name == "version2.gguf") {
      CHECK((written == read_file(kGood + "/bert.gguf")));
    } else {
      CHECK((written.substr(0, original.size()) == original));
      CHECK(written.size() - original.size() < (name == "empty.gguf" ? 32 : 1));
    }
    CHECK(
        compare_checkpoints(open_checkpoint(kGood + "/" + name), open_checkpoint(folder / name), {})
            .empty());
  }
}

TEST_CASE("the naive reading agrees about the files of the gguf package") {
  for (const std::string& name : good_files()) {
    CAPTURE(name);
    CHECK(wrong_gguf(read_file(kGood + "/" + name)) == "");
  }
}

TEST_CASE("what GGUF cannot hold is not written") {
  const auto write = [](const TensorInfo& info, const Metadata& metadata) {
    OutputWeights weights;
    weights.tensors.push_back({info, Literal{std::string(4, 'x')}});
    weights.metadata = metadata;
    return message_of([&] { weights_writer("gguf").plan(weights, "out.gguf"); });
  };
  const TensorInfo one{.name = "a", .dtype = DType::kF32, .shape = {1}};
  TensorInfo name = one;
  name.name.assign(64, 'n');
  TensorInfo rank = one;
  rank.shape = {1, 1, 1, 1, 1};
  CHECK(contains(write(name, {}), "a name of 64 bytes, GGUF has 1 to 63"));
  CHECK(contains(write(rank, {}), "5 dimensions, GGUF has at most 4"));
  CHECK(contains(write(one, {{"\xC3\xA9", "x"}}), "GGUF has keys of 1 to 65535 bytes of ASCII"));
  CHECK(contains(write(one, {{"general.alignment", "64"}}), "which GGUF does not have there"));
  CHECK(write(one, {{"k", "\xC3\xA9"}}) == "(nothing thrown)");
}

TEST_CASE("opaque tensors go along inside of their format and nowhere else") {
  const TempFolder folder;
  const auto convert = [&](const std::string& out, bool skip) {
    surgery::ConvertRequest request;
    request.skip_opaque = skip;
    return surgery::convert_checkpoint(kGood + "/types.gguf", folder / out, request);
  };
  CHECK(convert("same.gguf", false).notes.empty());
  CHECK_FALSE(different_opaque(open_checkpoint(kGood + "/types.gguf"),
                               open_checkpoint(folder / "same.gguf")));
  const std::string why = message_of([&] { convert("out.safetensors", false); });
  CHECK(contains(why, "tensor 'blocks.Q4_0' is Q4_0, which safetensors cannot hold, nor "));
  CHECK_FALSE(exists(folder / "out.safetensors"));
  const auto skipped = convert("out.safetensors", true);
  const Checkpoint all = open_checkpoint(kGood + "/types.gguf");
  CHECK(skipped.notes.size() == all.opaque().size());
  CHECK(contains(skipped.notes.front(), "'blocks.Q4_0' is left out: Q4_0 [2,256]"));
  const auto changes = compare_checkpoints(all, open_checkpoint(folder / "out.safetensors"), {});
  CHECK(changes.size() == all.opaque().size());
  CHECK(contains(message_of([&] { all.get("blocks.Q6_K"); }),
                 "tensor 'blocks.Q6_K' is Q6_K: values of this type cannot be read"));
}

TEST_CASE("the type of a file's values follows a conversion") {
  const TempFolder folder;
  const auto file = [](std::uint32_t type) {
    return make_gguf({gguf_value("general.file_type", 4, u32(0))},
                     {gguf_tensor("a", {32}, type, 0)}, std::string(type == 8 ? 34 : 128, '\0'));
  };
  const auto convert = [&](const std::string& in, DType dtype) {
    surgery::ConvertRequest request;
    request.dtype = dtype;
    const auto result = surgery::convert_checkpoint(folder / in, folder / "out.gguf", request);
    const Checkpoint out = open_checkpoint(folder / "out.gguf");
    return out.files()[0].content.typed[0].text + (result.notes.empty() ? "" : result.notes[0]);
  };
  write_file(folder / "in.gguf", file(0));
  write_file(folder / "quantised.gguf", file(8));
  CHECK(convert("in.gguf", DType::kF16) == "1");
  CHECK(convert("in.gguf", DType::kBF16) == "32");
  CHECK(convert("in.gguf", DType::kF64) ==
        "0metadata 'general.file_type' stays 0: there is no number for F64");
  CHECK(convert("out.gguf", DType::kF32) == "0");
  CHECK(convert("quantised.gguf", DType::kF16) == "0");
}

TEST_CASE("opaque tensors count in differences and digests") {
  const TempFolder folder;
  std::string file = read_file(kGood + "/bert.gguf");
  const Checkpoint before = open_checkpoint(kGood + "/bert.gguf");
  const OpaqueTensor& opaque = before.opaque().front();
  file[opaque.begin + 3] = static_cast<char>(file[opaque.begin + 3] ^ 1);
  write_file(folder / "other.gguf", file);
  const Checkpoint after = open_checkpoint(folder / "other.gguf");
  const auto changes = compare_checkpoints(before, after, {});
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].name == opaque.name);
  CHECK(changes[0].kind == ChangeKind::kValues);
  CHECK(changes[0].diff.count == 1);
  CHECK(changes[0].diff.first == 3);
  CHECK(different_opaque(before, after) == opaque.name);
  const auto total = [](const Checkpoint& checkpoint) {
    return hash_checkpoint(checkpoint, HashKind::kSha256, 1, {}).total;
  };
  CHECK(total(before) != total(after));
  CHECK(total(before) == total(open_checkpoint(kGood + "/align64.gguf")));
}

TEST_CASE("data may begin anywhere with alignments of 1, 2 and 4") {
  const TempFolder folder;
  for (const std::uint32_t alignment : {1U, 2U, 4U, 8U}) {
    CAPTURE(alignment);
    for (const std::string key : {"k", "ke", "key"}) {
      // The second tensor lies as near as the alignment lets it.
      const std::uint64_t second = (3 + alignment - 1) / alignment * alignment;
      std::string data = "abc";
      data.resize(second);
      data += std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
      const std::string file =
          make_gguf({gguf_value("general.alignment", 4, u32(alignment)), gguf_value(key, 0, "x")},
                    {gguf_tensor("bytes", {3}, 24, 0), gguf_tensor("floats", {2}, 0, second)}, data,
                    alignment);
      CHECK(wrong_gguf(file).empty());
      write_file(folder / "a.gguf", file);
      const Checkpoint checkpoint = open_checkpoint(folder / "a.gguf");
      std::array<float, 2> floats{};
      checkpoint.read(checkpoint.get("floats"), 0, std::as_writable_bytes(std::span(floats)));
      CHECK(floats == std::array{1.0F, 2.0F});
    }
  }
}

}  // namespace
}  // namespace masque::store
