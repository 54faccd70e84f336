// PyTorch files that we write: read again as they were, in the same bytes for any number of
// threads.
#include "store/torch/torch_writer.hpp"

#include <fcntl.h>

#include <doctest/doctest.h>

#include "store/checkpoint_writer.hpp"
#include "store/torch/pickle.hpp"
#include "store/values.hpp"
#include "store/zip/zip.hpp"
#include "store/zip/zip_stream.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::TempFolder;

const std::string kTorchGood = MASQUE_TEST_DATA "/torch/good";

void write(const Checkpoint& from, const std::string& path, int threads = 0) {
  OutputWeights weights = copy_of(from.files()[0]);
  WriteOptions options;
  options.threads = threads;
  write_checkpoint_file(path, weights, options);
}

std::vector<ZipMember> members_of(const std::string& path) {
  return value_or_throw(read_zip_directory(InputFile::open(path)));
}

TEST_CASE("every file of PyTorch written again has the same tensors and ties") {
  const TempFolder folder;
  const std::string path = folder / "out.bin";
  std::size_t files = 0;
  for (const std::string& name : test::names_in(kTorchGood)) {
    if (!name.ends_with(".pt") && !name.ends_with(".legacy")) continue;
    CAPTURE(name);
    ++files;
    const Checkpoint before = open_checkpoint(kTorchGood + "/" + name);
    write(before, path);
    const Checkpoint after = open_checkpoint(path);
    CHECK(after.notes().empty());
    REQUIRE(after.tensors().size() == before.tensors().size());
    for (std::size_t i = 0; i < after.tensors().size(); ++i) {
      const TensorInfo& a = before.tensors()[i];
      const TensorInfo& b = after.tensors()[i];
      CAPTURE(a.name);
      CHECK(b.name == a.name);
      CHECK(b.dtype == a.dtype);
      CHECK(b.shape == a.shape);
      CHECK(b.alias_of == a.alias_of);
      CHECK(b.reader == nullptr);
      CHECK(bytes_of(after, b.name) == bytes_of(before, a.name));
    }
    const std::string bytes = test::read_file(path);
    for (const int threads : {1, 2, 7}) {
      write(before, path, threads);
      CHECK((test::read_file(path) == bytes));
    }
    write(after, folder / "again.bin");
    CHECK((test::read_file(folder / "again.bin") == bytes));
  }
  CHECK(files >= 19);
}

TEST_CASE("a written file is laid out as torch does it") {
  const TempFolder folder;
  const std::string path = folder / "out.bin";
  write(open_checkpoint(kTorchGood + "/dtypes.pt"), path);
  const auto members = members_of(path);
  REQUIRE(members.size() == 23);
  CHECK(members[0].name == "archive/data.pkl");
  CHECK(members[1].name == "archive/byteorder");
  CHECK(members[2].name == "archive/data/0");
  CHECK(members.back().name == "archive/version");
  const InputFile file = InputFile::open(path);
  for (const ZipMember& member : members) {
    CAPTURE(member.name);
    CHECK(member.data_begin % 64 == 0);
    CHECK_FALSE(ZipStream(file, member).finish().has_value());
  }
  const std::string bytes = test::read_file(path);
  CHECK(bytes.substr(bytes.size() - 98, 4) == "PK\x06\x06");
  CHECK(bytes.substr(bytes.size() - 42, 4) == "PK\x06\x07");
  // The local header of torch.save itself, but for the folder's name.
  CHECK(bytes.substr(0, 28) ==
        test::read_file(kTorchGood + "/old.pt").substr(0, 4) +
            std::string("\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22) +
            std::string("\x10\0", 2));
}

TEST_CASE("tensors that are tied but differ are stored twice") {
  const TempFolder folder;
  const Checkpoint ties = open_checkpoint(kTorchGood + "/ties.pt");
  OutputWeights weights = copy_of(ties.files()[0]);
  REQUIRE(weights.tensors[1].info.alias_of == "embedding");
  weights.tensors[1].source = Literal{std::string(80, 'x')};
  write_checkpoint_file(folder / "out.bin", weights, {});
  const Checkpoint after = open_checkpoint(folder / "out.bin");
  CHECK(after.get("decoder").alias_of.empty());
  CHECK(bytes_of(after, "decoder") == std::string(80, 'x'));
  CHECK(bytes_of(after, "embedding") == bytes_of(ties, "embedding"));
  CHECK(after.get("again").alias_of == "embedding");
  CHECK(after.get("transposed_again").alias_of == "transposed");
}

TEST_CASE("types that torch has not, or not in this form, are refused") {
  const auto& writer = weights_writer("torch");
  CHECK_FALSE(writer.holds(DType::kF6E2M3));
  CHECK_FALSE(writer.holds(DType::kF6E3M2));
  for (const DType dtype : all_dtypes()) {
    CAPTURE(dtype_name(dtype));
    CHECK((writer.holds(dtype) || dtype == DType::kF6E2M3 || dtype == DType::kF6E3M2));
  }
  const TempFolder folder;
  OutputWeights weights;
  weights.writer = "torch";
  weights.tensors.push_back(
      {{.name = "f4", .dtype = DType::kF4, .shape = {2, 3}}, Literal{std::string(3, 'x')}});
  CHECK(test::contains(
      test::message_of([&] { write_checkpoint_file(folder / "out.bin", weights, {}); }),
      "packs F4 by twos"));
  CHECK(writer_for_path("x.pt") == &writer);
  CHECK(writer_for_path("x.bin") == &writer);
}

TEST_CASE("numbers of every size are pickled and read") {
  for (const std::uint64_t size : {0ULL, 1ULL, 255ULL, 256ULL, 65'535ULL, 65'536ULL, 0x7FFF'FFFFULL,
                                   0x8000'0000ULL, 1ULL << 40}) {
    const std::string text = write_torch_pickle(
        {{"a", DType::kI8, {size, 1}, 0}, {"größe", DType::kU16, {size, 2, 1, 1}, 1}});
    const Pickle pickle = value_or_throw(read_pickle(text, 0, 5));
    CHECK(pickle.end == text.size());
    REQUIRE(pickle.tensors.size() == 2);
    CHECK(pickle.tensors[0].sizes == Shape{size, 1});
    CHECK(pickle.tensors[1].sizes == Shape{size, 2, 1, 1});
    CHECK(pickle.tensors[1].dtype == DType::kU16);
    CHECK(pickle.storages[1].bytes() == 4 * size);
  }
}

TEST_CASE("sizes and places beyond 4 GiB are written and read") {
  // Sparse: only the records are written.
  const TempFolder folder;
  const std::string path = folder / "large.bin";
  constexpr std::uint64_t kBytes = (1ULL << 32) + 32;
  std::vector<TorchRecord> records;
  {
    test::write_file(path, "");
    const Descriptor out(
        ::open(path.c_str(), O_WRONLY));  // NOLINT(cppcoreguidelines-pro-type-vararg)
    std::uint64_t at = 0;
    const auto put = [&](const std::string& text) {
      write_at(out.get(), at, as_bytes(text), path);
      at += text.size();
    };
    for (const std::uint64_t bytes : {kBytes, std::uint64_t{8}, kBytes}) {
      records.push_back({"archive/data/" + std::to_string(records.size()), bytes, 7, at});
      put(write_torch_local_header(records.back()));
      CHECK(at % 64 == 0);
      at += bytes;
      put(write_torch_descriptor(records.back()));
    }
    put(write_torch_directory(records, at));
  }
  const auto members = members_of(path);
  REQUIRE(members.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(members[i].bytes == records[i].bytes);
    CHECK(members[i].header_begin == records[i].header_begin);
  }
}

}  // namespace
}  // namespace masque::store
