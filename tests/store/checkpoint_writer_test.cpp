// Written checkpoints hold what was requested, and copies are the same bytes.
#include "store/checkpoint_writer.hpp"

#include <sys/stat.h>

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "store/safetensors/safetensors.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::bytes_tensor;
using test::contains;
using test::make_safetensors;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kGood = MASQUE_TEST_DATA "/safetensors/good/";

OutputTensor tensor(const std::string& name, const std::string& bytes) {
  return {{.name = name, .dtype = DType::kU8, .shape = {bytes.size()}}, Literal{bytes}};
}

std::vector<std::string> names_of(const OutputWeights& weights) {
  std::vector<std::string> names;
  for (const OutputTensor& each : weights.tensors) names.push_back(each.info.name);
  return names;
}

TEST_CASE("a copy of a file of the reference library is the same bytes") {
  const TempFolder folder;
  for (const char* stem : {"dtypes", "shapes", "many"}) {
    const Checkpoint checkpoint = open_checkpoint(kGood + stem + ".safetensors");
    write_checkpoint_file(folder / "copy", copy_of(checkpoint.files()[0]), {});
    CAPTURE(stem);
    CHECK(read_file(folder / "copy") == read_file(checkpoint.path()));
  }
}

TEST_CASE("tensors copied in any order and choice keep their bytes") {
  const TempFolder folder;
  const Checkpoint checkpoint = open_checkpoint(kGood + "dtypes.safetensors");
  const OutputWeights all = copy_of(checkpoint.files()[0]);
  OutputWeights reversed = all;
  std::reverse(reversed.tensors.begin(), reversed.tensors.end());
  OutputWeights every_third = all;
  std::size_t i = 0;
  std::erase_if(every_third.tensors, [&](const OutputTensor&) { return i++ % 3 != 0; });
  OutputWeights twice = all;  // the same bytes under a second name
  twice.tensors.push_back(all.tensors[0]);
  twice.tensors.back().info.name = "again";
  for (const OutputWeights& weights : {reversed, every_third, twice}) {
    write_checkpoint_file(folder / "out", weights, {});
    const Checkpoint written = open_checkpoint(folder / "out");
    REQUIRE(written.tensors().size() == weights.tensors.size());
    for (const TensorInfo& tensor : written.tensors()) {
      const TensorInfo& source = checkpoint.get(tensor.name == "again" ? "uint64" : tensor.name);
      std::vector<std::byte> found(tensor.bytes());
      std::vector<std::byte> expected(source.bytes());
      written.read(tensor, 0, found);
      checkpoint.read(source, 0, expected);
      CAPTURE(tensor.name);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a copy says which framework it is for, and keeps what was said") {
  const TempFolder folder;
  write_file(folder / "none", make_safetensors({bytes_tensor("x", "x")}));
  write_file(folder / "tf",
             make_safetensors({bytes_tensor("x", "x")}, R"({"z":"1","format":"tf"})"));
  const auto metadata = [&](const char* name) {
    return copy_of(open_checkpoint(folder / name).files()[0]).metadata;
  };
  CHECK(metadata("none") == Metadata{{"format", "pt"}});
  CHECK(metadata("tf") == Metadata{{"z", "1"}, {"format", "tf"}});
}

TEST_CASE("a copy keeps the alignment of the data") {
  const TempFolder folder;
  for (const std::uint64_t alignment : {8U, 64U, 4096U}) {
    const TensorInfo info{.name = "x", .dtype = DType::kU8, .shape = {3}};
    write_file(folder / "f",
               write_safetensors_header({info}, {{"format", "pt"}}, alignment) + "abc");
    const Checkpoint checkpoint = open_checkpoint(folder / "f");
    OutputWeights copy = copy_of(checkpoint.files()[0]);
    set_metadata(copy.metadata, "note", "a longer header");
    write_checkpoint_file(folder / "copy", copy, {});
    CAPTURE(alignment);
    CHECK(open_checkpoint(folder / "copy").files()[0].content.data_begin % alignment == 0);
  }
}

TEST_CASE("a header with fields that would be lost is not copied") {
  const TempFolder folder;
  std::string file = make_safetensors({bytes_tensor("x", "")});
  file.replace(file.find("\"dtype\":\"U8\""), 0, "\"strides\":1,");
  file[0] = static_cast<char>(file.size() - 8);
  write_file(folder / "f", file);
  const Checkpoint checkpoint = open_checkpoint(folder / "f");
  CHECK(contains(message_of([&] { copy_of(checkpoint.files()[0]); }),
                 "'strides' is not a field of safetensors and would be lost"));
}

TEST_CASE("new tensors go to their places in the reference order or after their neighbours") {
  OutputWeights sorted{.tensors = {tensor("a", "1"), tensor("c", "2")}};
  insert_tensors(sorted, {{tensor("d", "4"), "a"},
                          {tensor("b", "3"), "c"},
                          {{{.name = "z", .dtype = DType::kF32, .shape = {0}}, Literal{}}, "a"}});
  CHECK(names_of(sorted) == std::vector<std::string>{"z", "a", "b", "c", "d"});
  insert_tensors(sorted, {});
  CHECK(names_of(sorted).size() == 5);
  OutputWeights unsorted{.tensors = {tensor("c", "1"), tensor("a", "2")}};
  insert_tensors(unsorted, {{tensor("b", "3"), "c"}, {tensor("d", "4"), "nowhere"}});
  CHECK(names_of(unsorted) == std::vector<std::string>{"c", "b", "a", "d"});
  insert_tensors(unsorted, {{tensor("e", "5"), "b"}, {tensor("f", "6"), "e"}});
  CHECK(names_of(unsorted) == std::vector<std::string>{"c", "b", "e", "f", "a", "d"});
}

TEST_CASE("an output that fails its verification is discarded") {
  const TempFolder folder;
  write_file(folder / "f", "old");
  std::string staged;
  WriteOptions options;
  options.verify = [&](const std::string& path) {
    staged = path;
    CHECK(open_checkpoint(path).find("x") != nullptr);
    throw InputError(path, "is not what was requested");
  };
  const OutputWeights weights{.name = "model.safetensors", .tensors = {tensor("x", "1")}};
  CHECK(contains(message_of([&] { write_checkpoint_file(folder / "f", weights, options); }),
                 "is not what was requested"));
  CHECK(read_file(folder / "f") == "old");
  CHECK(staged == folder / ".f.masque-tmp");
  CHECK(contains(message_of([&] { write_checkpoint_folder(folder / "d", {weights}, {}, options); }),
                 "is not what was requested"));
  CHECK(folder.names() == std::vector<std::string>{"f"});
}

TEST_CASE("a folder gets its weights and its other files with their modes") {
  const TempFolder folder;
  write_file(folder / "in/vocab.txt", "words");
  write_file(folder / "in/sub/notes.md", "notes");
  write_file(folder / "in/model.safetensors", "not copied");
  REQUIRE(::chmod((folder / "in/vocab.txt").c_str(), 0640) == 0);
  std::deque<InputFile> opened;
  write_file(folder / "outside", "far");
  REQUIRE(::symlink("../outside", (folder / "in/link").c_str()) == 0);
  std::vector<std::string> notes;
  CHECK(contains(
      message_of([&] { other_files(folder / "in", {"model.safetensors"}, opened, false, notes); }),
      "in/link: is a link to outside of the folder"));
  REQUIRE(::unlink((folder / "in/link").c_str()) == 0);
  REQUIRE(::symlink("../vocab.txt", (folder / "in/sub/link").c_str()) == 0);
  REQUIRE(other_files(folder / "in", {"model.safetensors"}, opened, true, notes).size() == 3);
  CHECK(notes.empty());
  REQUIRE(::unlink((folder / "in/sub/link").c_str()) == 0);
  notes.clear();
  std::vector<OutputExtra> extras =
      other_files(folder / "in", {"model.safetensors"}, opened, false, notes);
  CHECK(notes.empty());
  extras.push_back({"config.json", Literal{"{}"}, 2});
  const std::vector<OutputWeights> weights = {
      {.name = "a.safetensors", .tensors = {tensor("x", "xx"), tensor("y", "")}},
      {.name = "b.safetensors", .tensors = {tensor("z", "z")}},
  };
  write_checkpoint_folder(folder / "out", weights, extras, {.threads = 2});
  CHECK(list_files(folder / "out") == std::vector<std::string>{"a.safetensors", "b.safetensors",
                                                               "config.json", "sub/notes.md",
                                                               "vocab.txt"});
  CHECK(read_file(folder / "out/config.json") == "{}");
  CHECK(read_file(folder / "out/sub/notes.md") == "notes");
  CHECK(read_file(folder / "out/a.safetensors") ==
        make_safetensors({bytes_tensor("x", "xx"), bytes_tensor("y", "")}));
  struct stat info = {};
  REQUIRE(::stat((folder / "out/vocab.txt").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0640);
}

TEST_CASE("neighbouring tensors of one file are copied in one piece") {
  const TempFolder folder;
  const Checkpoint checkpoint = open_checkpoint(kGood + "dtypes.safetensors");
  std::vector<std::uint64_t> done;
  WriteOptions options{.threads = 1};
  options.progress = [&](std::uint64_t now, std::uint64_t) { done.push_back(now); };
  write_checkpoint_file(folder / "copy", copy_of(checkpoint.files()[0]), options);
  CHECK(done == std::vector<std::uint64_t>{1392, 1758});  // the header, then the data
}

}  // namespace
}  // namespace masque::store
