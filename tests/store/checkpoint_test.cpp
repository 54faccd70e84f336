// Opening checkpoints by file, folder and index, and reading from them.
#include "store/checkpoint.hpp"

#include <sys/stat.h>

#include <filesystem>

#include <doctest/doctest.h>

#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::bytes_tensor;
using test::contains;
using test::make_safetensors;
using test::message_of;
using test::TempFolder;
using test::write_file;

std::string read(const Checkpoint& checkpoint, const std::string& name, std::uint64_t offset,
                 std::size_t size) {
  std::string out(size, '?');
  checkpoint.read(checkpoint.get(name), offset, std::as_writable_bytes(std::span(out)));
  return out;
}

/// Two shards: x and y in a, z in b.
void write_shards(const TempFolder& folder) {
  write_file(folder / "a.safetensors",
             make_safetensors({bytes_tensor("x", "xxx"), bytes_tensor("y", "yy")}));
  write_file(folder / "b.safetensors", make_safetensors({bytes_tensor("z", "z")}));
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"x":"a.safetensors","z":"b.safetensors","y":"a.safetensors"}})");
}

TEST_CASE("a single file is a checkpoint of one file") {
  const TempFolder folder;
  write_file(folder / "w.bin",
             make_safetensors({bytes_tensor("x", "0123"), bytes_tensor("y", "")}));
  const Checkpoint checkpoint = open_checkpoint(folder / "w.bin");
  CHECK(checkpoint.path() == folder / "w.bin");
  CHECK(checkpoint.folder() == folder.path());
  CHECK_FALSE(checkpoint.is_folder());
  CHECK_FALSE(checkpoint.index().has_value());
  REQUIRE(checkpoint.files().size() == 1);
  CHECK(checkpoint.files()[0].name == "w.bin");
  CHECK(checkpoint.tensor_bytes() == 4);
  CHECK(read(checkpoint, "x", 0, 4) == "0123");
  CHECK(read(checkpoint, "x", 1, 2) == "12");
  CHECK(read(checkpoint, "y", 0, 0).empty());
}

TEST_CASE("reading beyond a tensor is a bug of the caller, not a read of its neighbour") {
  const TempFolder folder;
  write_file(folder / "f",
             make_safetensors({bytes_tensor("x", "0123"), bytes_tensor("y", "yyyy")}));
  const Checkpoint checkpoint = open_checkpoint(folder / "f");
  CHECK_THROWS_AS(read(checkpoint, "x", 2, 3), std::logic_error);
  CHECK_THROWS_AS(read(checkpoint, "x", 5, 0), std::logic_error);
  CHECK_THROWS_AS(read(checkpoint, "x", ~std::uint64_t{0}, 2), std::logic_error);
}

TEST_CASE("a missing tensor is answered with the nearest name") {
  const TempFolder folder;
  write_file(folder / "f", make_safetensors({bytes_tensor("bert.embeddings.weight", "1"),
                                             bytes_tensor("cls\x1b", "2")}));
  const Checkpoint checkpoint = open_checkpoint(folder / "f");
  CHECK(checkpoint.find("bert.embedding.weight") == nullptr);
  CHECK(contains(message_of([&] { checkpoint.get("bert.embedding.weight"); }),
                 "no tensor 'bert.embedding.weight'; did you mean 'bert.embeddings.weight'?"));
  CHECK(contains(message_of([&] { checkpoint.get("cls"); }), "did you mean 'cls\\x1b'?"));
  CHECK_FALSE(contains(message_of([&] { checkpoint.get("something.else"); }), "mean"));
}

TEST_CASE("shards are opened by folder and by index") {
  const TempFolder folder;
  write_shards(folder);
  for (const std::string& path : {folder.path(), folder / "model.safetensors.index.json"}) {
    const Checkpoint checkpoint = open_checkpoint(path);
    CAPTURE(path);
    CHECK(checkpoint.is_folder());
    CHECK(checkpoint.folder() == folder.path());
    CHECK(checkpoint.index_name() == "model.safetensors.index.json");
    REQUIRE(checkpoint.files().size() == 2);
    CHECK(checkpoint.files()[0].name == "a.safetensors");
    CHECK(checkpoint.files()[1].name == "b.safetensors");
    CHECK(checkpoint.notes().empty());
    CHECK(checkpoint.tensors().size() == 3);
    CHECK(read(checkpoint, "y", 0, 2) == "yy");
    CHECK(read(checkpoint, "z", 0, 1) == "z");
  }
}

TEST_CASE("a checkpoint can be moved") {
  const TempFolder folder;
  write_shards(folder);
  Checkpoint first = open_checkpoint(folder.path());
  const Checkpoint second = std::move(first);
  CHECK(read(second, "x", 0, 3) == "xxx");
  CHECK(second.find("z") == &second.tensors()[2]);
}

TEST_CASE("tensors that the index does not name are noted and readable") {
  const TempFolder folder;
  write_shards(folder);
  write_file(folder / "model.safetensors.index.json",
             R"({"weight_map":{"x":"a.safetensors","z":"b.safetensors"}})");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  CHECK(checkpoint.notes() ==
        std::vector<std::string>{"1 tensors of the shards are not in the index"});
  CHECK(read(checkpoint, "y", 0, 2) == "yy");
}

TEST_CASE("a shard that is a link is read, one that is no file is refused") {
  const TempFolder folder;
  write_shards(folder);
  // As in the cache of the Hub: names are links to blobs elsewhere.
  std::filesystem::rename(folder / "a.safetensors", folder / "blob");
  std::filesystem::create_directory(folder / "snapshot");
  for (const char* name : {"b.safetensors", "model.safetensors.index.json"}) {
    std::filesystem::rename(folder / name, folder / ("snapshot/" + std::string(name)));
  }
  std::filesystem::create_symlink("../blob", folder / "snapshot/a.safetensors");
  CHECK(read(open_checkpoint(folder / "snapshot"), "x", 0, 3) == "xxx");
  std::filesystem::remove(folder / "snapshot/b.safetensors");
  CHECK(contains(message_of([&] { open_checkpoint(folder / "snapshot"); }),
                 "snapshot/b.safetensors: opening: No such file"));
  REQUIRE(::mkfifo((folder / "snapshot/b.safetensors").c_str(), 0600) == 0);
  CHECK(contains(message_of([&] { open_checkpoint(folder / "snapshot"); }), "is a pipe"));
}

TEST_CASE("a header length that looks like the start of an index misleads nobody") {
  const TempFolder folder;
  // '{', ' ' and '\n' as lengths of the header: 123, 32 and 10 bytes.
  for (const std::size_t length : {123U, 32U, 10U}) {
    std::string file(8, '\0');
    file[0] = static_cast<char>(length);
    file += '{';
    file.resize(8 + length - 1, ' ');
    write_file(folder / "f", file + '}');
    CAPTURE(length);
    CHECK(open_checkpoint(folder / "f").tensors().empty());
  }
  // Even with the word in it.
  std::string json = R"({"__metadata__":{"x":"y"},"weight_map":{"dtype":"U8","shape":[0],)"
                     R"("data_offsets":[0,0]}})";
  json.resize(123, ' ');
  write_file(folder / "f", std::string("\x7B\0\0\0\0\0\0\0", 8) + json);
  CHECK(open_checkpoint(folder / "f").find("weight_map") != nullptr);
}

TEST_CASE("the weights of a folder are looked for in the documented order") {
  const TempFolder folder;
  const auto message = [&] { return message_of([&] { open_checkpoint(folder.path()); }); };
  CHECK(contains(message(), "holds no weights, expected model.safetensors or its index"));
  write_file(folder / "sub/only.safetensors", make_safetensors({}));
  CHECK(contains(message(), "holds no weights"));
  write_file(folder / "only.safetensors", make_safetensors({bytes_tensor("only", "1")}));
  CHECK(open_checkpoint(folder.path()).find("only") != nullptr);
  write_shards(folder);
  CHECK(open_checkpoint(folder.path()).find("z") != nullptr);
  std::filesystem::remove(folder / "model.safetensors.index.json");
  CHECK(contains(message(), "has 3 *.safetensors files and no index: give the name of one"));
  write_file(folder / "model.safetensors", make_safetensors({bytes_tensor("single", "1")}));
  CHECK(open_checkpoint(folder.path()).find("single") != nullptr);
  write_file(folder / "model.safetensors.index.json", "not even JSON");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  CHECK(checkpoint.find("single") != nullptr);
  CHECK(checkpoint.notes() ==
        std::vector<std::string>{"'model.safetensors.index.json' is ignored"});
}

TEST_CASE("formats are registered once each and do not claim what is not theirs") {
  const TempFolder folder;
  const auto formats = file_formats();
  REQUIRE_FALSE(formats.empty());
  for (std::size_t i = 0; i < formats.size(); ++i) {
    CAPTURE(formats[i]->name);
    CHECK_FALSE(formats[i]->name.empty());
    if (i > 0) CHECK(formats[i - 1]->name < formats[i]->name);
    for (const std::string text :
         {"", "{\"weight_map\":{}}", "an ordinary text of some length", "PK\x01\x02 and no more"}) {
      write_file(folder / "file", text);
      const InputFile file = InputFile::open(folder / "file");
      CHECK_FALSE(formats[i]->recognise(file, as_bytes(text)));
    }
  }
}

TEST_CASE("rows of a tensor are all dimensions but the first") {
  TensorInfo tensor;
  CHECK(tensor.row_elements() == 1);
  CHECK(tensor.elements() == 1);
  tensor.shape = {7};
  CHECK(tensor.row_elements() == 1);
  tensor.shape = {7, 3, 5};
  CHECK(tensor.row_elements() == 15);
  CHECK(tensor.elements() == 105);
}

TEST_CASE("metadata keys are set in place, added in order and removed") {
  Metadata sorted = {{"a", "1"}, {"c", "3"}};
  set_metadata(sorted, "b", "2");
  CHECK(sorted == Metadata{{"a", "1"}, {"b", "2"}, {"c", "3"}});
  set_metadata(sorted, "c", "4");
  CHECK(*find_metadata(sorted, "c") == "4");
  Metadata unsorted = {{"c", "3"}, {"a", "1"}};
  set_metadata(unsorted, "b", "2");
  CHECK(unsorted == Metadata{{"c", "3"}, {"a", "1"}, {"b", "2"}});
  erase_metadata(unsorted, "c");
  erase_metadata(unsorted, "none");
  CHECK(unsorted == Metadata{{"a", "1"}, {"b", "2"}});
  CHECK(find_metadata(unsorted, "c") == nullptr);
}

}  // namespace
}  // namespace masque::store
