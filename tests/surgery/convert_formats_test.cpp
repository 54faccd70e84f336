// Every registered format into every other, and back.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "store/inspect/compare_checkpoints.hpp"
#include "store/numpy/npy.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"

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

/// Tensors of the types that both writers have, or one for those that hold just one.
std::vector<SmallTensor> tensors_for(const WeightsWriter& a, const WeightsWriter& b) {
  std::vector<SmallTensor> tensors;
  for (const DType dtype : {DType::kF64, DType::kI64, DType::kC64, DType::kF32, DType::kI32,
                            DType::kBF16, DType::kF16, DType::kI16, DType::kU8, DType::kBool}) {
    if (!a.holds(dtype) || !b.holds(dtype)) continue;
    const std::string name = fmt::format("t.{}", tensors.size());
    const std::size_t width = dtype_bits(dtype) / 8;
    std::string bytes = random_bytes(tensors.size(), 6 * width);
    if (dtype == DType::kBool) bytes = std::string("\0\1\0\0\1\1", 6);
    tensors.push_back({name, std::string(dtype_name(dtype)), {2, 3}, bytes});
    tensors.push_back({name + "s", std::string(dtype_name(dtype)), {}, bytes.substr(0, width)});
    tensors.push_back({name + "none", std::string(dtype_name(dtype)), {0, 4}, ""});
  }
  if (a.name != "npy" && b.name != "npy") return tensors;
  tensors.resize(1);
  tensors[0].name = kNpyName;
  return tensors;
}

TEST_CASE("from every format to every other and back is the same bytes") {
  std::size_t pairs = 0;
  for (const WeightsWriter* a : weights_writers()) {
    for (const WeightsWriter* b : weights_writers()) {
      CAPTURE(a->name);
      CAPTURE(b->name);
      const TempFolder folder;
      write_file(folder / "start.safetensors", make_safetensors(tensors_for(*a, *b), kPt));
      const auto path = [&](const char* stem, const WeightsWriter& writer) {
        return folder / fmt::format("{}{}", stem, writer.extension);
      };
      convert_checkpoint(folder / "start.safetensors", path("a", *a), {});
      const auto there = convert_checkpoint(path("a", *a), path("b", *b), {});
      CHECK(there.notes.empty());
      convert_checkpoint(path("b", *b), path("back", *a), {});
      // A bundle sorts its tensors by their names, whatever their order was.
      const bool sorts = b->name == "tensorflow" && a != b;
      CHECK((sorts || read_file(path("a", *a)) == read_file(path("back", *a))));
      CHECK(
          compare_checkpoints(open_checkpoint(path("a", *a)), open_checkpoint(path("back", *a)), {})
              .empty());
      CHECK(compare_checkpoints(open_checkpoint(folder / "start.safetensors"),
                                open_checkpoint(path("b", *b)), {})
                .empty());
      ++pairs;
    }
  }
  CHECK(pairs >= 9);
}

/// What is in a folder that the test below writes.
Names files_of(const WeightsWriter& writer) {
  Names names = {"config.json", std::string(writer.single), "sub"};
  if (!writer.data.empty()) names.push_back(data_name(writer, names[1]));
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("a folder in every format, its shards and its other files") {
  for (const WeightsWriter* writer : weights_writers()) {
    if (writer->single.empty()) continue;
    CAPTURE(writer->name);
    const TempFolder folder;
    write_file(folder / "in/model.safetensors",
               make_safetensors({{"a", "F32", {2}, "12345678"}, {"b", "F32", {1}, "1234"}}, kPt));
    write_file(folder / "in/config.json", "{}");
    write_file(folder / "in/sub/vocab.txt", "x");
    ConvertRequest request;
    request.format = std::string(writer->name);
    convert_checkpoint(folder / "in", folder / "out", request);
    const Names expected = files_of(*writer);
    CHECK(names_in(folder / "out") == expected);
    const auto same = [&](const char* name) {
      return compare_checkpoints(open_checkpoint(folder / "in"), open_checkpoint(folder / name), {})
          .empty();
    };
    CHECK(same("out"));
    // Without --format a folder keeps its own.
    convert_checkpoint(folder / "out", folder / "again", {});
    CHECK(names_in(folder / "again") == expected);
    CHECK((read_file(folder / "again" + "/" + std::string(writer->single)) ==
           read_file(folder / "out" + "/" + std::string(writer->single))));
    request.shard_bytes = 4;
    if (writer->shard.empty()) {
      CHECK(contains(message_of<UsageError>(
                         [&] { convert_checkpoint(folder / "in", folder / "sharded", request); }),
                     "cannot be sharded"));
      continue;
    }
    CHECK(convert_checkpoint(folder / "in", folder / "sharded", request).files == 2);
    CHECK(exists(folder / fmt::format("sharded/{}.index.json", writer->single)));
    CHECK(same("sharded"));
    // Sharded into one file of the other kinds, and shards of another format, without old indexes.
    for (const WeightsWriter* other : weights_writers()) {
      if (other->single.empty()) continue;
      CAPTURE(other->name);
      ConvertRequest back;
      back.format = std::string(other->name);
      back.write.existing = Existing::kRefuse;
      const std::string name = fmt::format("from-shards-{}", other->name);
      convert_checkpoint(folder / "sharded", folder / name, back);
      CHECK(names_in(folder / name) == files_of(*other));
      CHECK(same(name.c_str()));
    }
  }
}

TEST_CASE("a type that the format has not is an error that names --dtype") {
  const TempFolder folder;
  write_file(folder / "in.safetensors",
             make_safetensors({{"a", "F32", {1}, "1234"}, {"b", "BF16", {1}, "\1\2"}}));
  const auto to = [&](std::optional<DType> dtype) {
    ConvertRequest request;
    request.dtype = dtype;
    convert_checkpoint(folder / "in.safetensors", folder / "out.npz", request);
  };
  CHECK(contains(message_of([&] { to({}); }),
                 "tensor 'b' is BF16, for which npz has no type (dtype F32 converts it)"));
  CHECK(contains(message_of<UsageError>([&] { to(DType::kBF16); }),
                 "dtype BF16: npz has no such type"));
  CHECK_FALSE(exists(folder / "out.npz"));
  to(DType::kF32);
  CHECK(open_checkpoint(folder / "out.npz").get("b").dtype == DType::kF32);
  write_file(folder / "in.safetensors", make_safetensors({{"f4", "F4", {2}, "1"}}));
  const std::string why = message_of([&] { to(DType::kF32); });
  CHECK(contains(why, "tensor 'f4' is F4, for which npz has no type"));
}

TEST_CASE("formats that do not fit the output are refused") {
  const TempFolder folder;
  write_file(folder / "in.safetensors", make_safetensors({{"a", "F32", {1}, "1234"}}));
  const auto why = [&](const char* format, const char* out) {
    ConvertRequest request;
    request.format = format;
    return message_of<UsageError>(
        [&] { convert_checkpoint(folder / "in.safetensors", folder / out, request); });
  };
  CHECK(contains(why("numpy", "out"), "format: found 'numpy', expected one of gguf, npy, npz, "));
  CHECK(contains(why("npz", "out.safetensors"), "format npz: the name of the file"));
  CHECK(contains(why("npy", "out"), "format npy cannot be written to a folder"));
  CHECK(folder.names() == Names{"in.safetensors"});
}

TEST_CASE("weights that would be opened instead of the new ones are left out") {
  const TempFolder folder;
  const std::string file = make_safetensors({{"a", "F32", {1}, "1234"}}, kPt);
  write_file(folder / "in/model.safetensors", file);
  write_file(folder / "in/pytorch_model.bin", "something");
  write_file(folder / "in/adapter.safetensors", file);
  write_file(folder / "in/training_args.bin", "something");
  ConvertRequest request;
  request.format = "npz";
  const auto result = convert_checkpoint(folder / "in", folder / "out", request);
  CHECK(names_in(folder / "out") == Names{"model.npz", "training_args.bin"});
  CHECK(result.notes == Names{"'adapter.safetensors' of the input is left out",
                              "'pytorch_model.bin' of the input is left out"});
  request.format = "safetensors";
  convert_checkpoint(folder / "in", folder / "same", request);
  CHECK(names_in(folder / "same") == names_in(folder / "in"));
}

}  // namespace
}  // namespace masque::surgery
