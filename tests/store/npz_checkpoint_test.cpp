// npy and npz files as checkpoints: what NumPy wrote reads as what it is, from any byte on, and is
// written as NumPy writes it.
#include <algorithm>
#include <array>
#include <set>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "store/checkpoint_writer.hpp"
#include "store/numpy/array.hpp"
#include "store/numpy/npy.hpp"
#include "store/numpy/npz.hpp"
#include "store/numpy/unpacked_tensor.hpp"
#include "store/values.hpp"
#include "support/make_zip.hpp"
#include "support/message.hpp"
#include "support/npz_oracle.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::make_zip;
using test::MemoryFile;
using test::message_of;
using test::names_in;
using test::read_file;
using test::TempFolder;
using test::text_of;
using test::wrong_npz;

const std::string kNpzGood = MASQUE_TEST_DATA "/npy/good";
constexpr std::uint64_t kMostBytes = 1 << 20;

std::vector<std::string> good_npz_files() {
  std::vector<std::string> names = names_in(kNpzGood);
  std::erase_if(names, [](const std::string& name) {
    return !name.ends_with(".npy") && !name.ends_with(".npz");
  });
  REQUIRE(names.size() >= 20);
  return names;
}

TEST_CASE("every file of NumPy is a checkpoint of its arrays") {
  std::size_t tensors = 0;
  for (const std::string& name : good_npz_files()) {
    CAPTURE(name);
    const Checkpoint checkpoint = open_checkpoint(kNpzGood + "/" + name);
    const auto arrays = read_arrays(kNpzGood + "/" + name, kMostBytes);
    REQUIRE(checkpoint.tensors().size() == arrays.size());
    for (const Array& array : arrays) {
      const TensorInfo& tensor = checkpoint.get(name.ends_with(".npz") ? array.name : "array");
      CHECK(tensor.dtype == array.dtype);
      CHECK(tensor.shape == array.shape);
      CHECK((bytes_of(checkpoint, tensor.name) == text_of(array)));
      ++tensors;
    }
  }
  CHECK(tensors > 130);
}

TEST_CASE("any part of a tensor is read, whatever way it lies") {
  for (const std::string& name : good_npz_files()) {
    CAPTURE(name);
    const Checkpoint checkpoint = open_checkpoint(kNpzGood + "/" + name);
    for (const TensorInfo& tensor : checkpoint.tensors()) {
      if (tensor.bytes() == 0 || tensor.bytes() > 300) continue;
      const std::string whole = bytes_of(checkpoint, tensor.name);
      std::size_t wrong = 0;
      for (std::size_t begin = 0; begin <= whole.size(); ++begin) {
        for (std::size_t size = 0; size <= whole.size() - begin; size += 1 + size / 8) {
          std::string part(size, '?');
          checkpoint.read(tensor, begin, std::as_writable_bytes(std::span(part)));
          wrong += part != whole.substr(begin, size) ? 1U : 0U;
        }
      }
      CAPTURE(tensor.name);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("only elements that do not lie in order need a reader") {
  const auto readers = [](const std::string& name) {
    std::string all;
    const Checkpoint checkpoint = open_checkpoint(kNpzGood + "/" + name);
    for (const TensorInfo& tensor : checkpoint.tensors())
      all += fmt::format("{}{} ", tensor.name, tensor.reader ? "*" : "");
    return all;
  };
  CHECK(readers("orders.npz") == "fortran* big* both* complex* scalar* row plain ");
  CHECK(readers("orders-compressed.npz") == "fortran* big* both* complex* scalar* row* plain* ");
  CHECK(readers("row-major.npy") == "array ");
  CHECK(readers("big-endian.npy") == "array* ");
}

TEST_CASE("packed tensors read by many threads at once are right") {
  const TempFolder folder;
  const Checkpoint checkpoint = open_checkpoint(kNpzGood + "/orders-compressed.npz");
  std::vector<std::string> expected;
  for (const TensorInfo& tensor : checkpoint.tensors())
    expected.push_back(bytes_of(checkpoint, tensor.name));
  std::vector<int> wrong(8, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t round = 0; round < 100; ++round) {
        const std::size_t i = (round * (t + 1) + t) % expected.size();
        std::string part(expected[i].size() - 1, '?');
        checkpoint.read(checkpoint.tensors()[i], 1, std::as_writable_bytes(std::span(part)));
        wrong[t] += part != expected[i].substr(1) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(8, 0));
}

TEST_CASE("a copy is what numpy.savez and numpy.save write") {
  const TempFolder folder;
  for (const std::string& name : good_npz_files()) {
    CAPTURE(name);
    const Checkpoint checkpoint = open_checkpoint(kNpzGood + "/" + name);
    for (const int threads : {1, 3}) {
      WriteOptions options;
      options.threads = threads;
      write_checkpoint_file(folder / "copy", copy_of(checkpoint.files()[0]), options);
      // Of these, NumPy would write other bytes: other headers, other zip records, packed.
      if (name.starts_with("savez.") || name == "row-major.npy" || name == "scalar.npy")
        CHECK((read_file(folder / "copy") == read_file(kNpzGood + "/" + name)));
      CHECK(wrong_npz(read_file(folder / "copy")) == "");
      const Checkpoint copy = open_checkpoint(folder / "copy");
      REQUIRE(copy.tensors().size() == checkpoint.tensors().size());
      for (std::size_t i = 0; i < copy.tensors().size(); ++i) {
        const TensorInfo& tensor = copy.tensors()[i];
        CHECK(tensor.name == checkpoint.tensors()[i].name);
        CHECK(tensor.reader == nullptr);
        CHECK((bytes_of(copy, tensor.name) == bytes_of(checkpoint, tensor.name)));
      }
    }
  }
}

TEST_CASE("a zip file with other members first is no npz") {
  for (const char* name : {"archive/data.pkl", "a.npz", "npy"}) {
    const auto zip = make_zip({{.name = name}, {.name = "a.npy"}});
    const MemoryFile file(zip.text);
    CHECK_FALSE(looks_like_npz(file.open(), as_bytes(zip.text).first(64)));
  }
  const auto zip = make_zip({{.name = "a.npy"}, {.name = "archive/data.pkl"}});
  const MemoryFile file(zip.text);
  CHECK(looks_like_npz(file.open(), as_bytes(zip.text).first(64)));
  const auto opened = open_checked(file.path());
  REQUIRE(std::holds_alternative<Violation>(opened));
  CHECK(std::get<Violation>(opened).rule == "npz-member");
}

/// The values of all tensors by name, or nothing if the file is refused sooner or later.
std::optional<std::string> all_values(const std::string& text) {
  const MemoryFile file(text);
  const auto content = read_weights(file.open());
  const auto* good = std::get_if<FileContent>(&content);
  if (good == nullptr) return std::nullopt;
  std::string all;
  const InputFile input = file.open();
  for (const TensorInfo& tensor : good->tensors) {
    std::string bytes(tensor.bytes(), '\0');
    const std::string message = message_of(
        [&] { read_tensor(input, tensor, 0, std::as_writable_bytes(std::span(bytes))); });
    if (message != "(nothing thrown)") return std::nullopt;
    all +=
        fmt::format("{} {} {} ", tensor.name, dtype_name(tensor.dtype), shape_text(tensor.shape)) +
        bytes;
  }
  return all;
}

TEST_CASE("a checkpoint of NumPy cut anywhere is refused") {
  for (const char* name : {"orders.npz", "orders-compressed.npz", "stream.npz", "big-endian.npy",
                           "column-major.npy"}) {
    const std::string file = read_file(kNpzGood + "/" + name);
    for (std::size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      const MemoryFile cut(file.substr(0, size));
      REQUIRE(std::holds_alternative<Violation>(open_checked(cut.path())));
    }
  }
}

/// The bytes of members whose CRC no read of a part compares: they lie in order.
std::set<std::size_t> unchecked(const std::string& path) {
  std::set<std::size_t> bytes;
  const InputFile file = InputFile::open(path);
  for (const ZipMember& member : value_or_throw(read_npz_directory(file))) {
    const bool flipped = array_name(member) == "fortran" || array_name(member) == "both";
    if (flipped || member.method != ZipMethod::kStored) continue;
    for (std::uint64_t i = 0; i < member.bytes; ++i) bytes.insert(member.data_begin + i);
  }
  return bytes;
}

TEST_CASE("any bit flipped is refused, is in a member that lies in order, or changes nothing") {
  for (const char* name : {"orders.npz", "orders-compressed.npz"}) {
    const std::string file = read_file(kNpzGood + "/" + name);
    const std::string before = all_values(file).value();
    const auto members = unchecked(kNpzGood + "/" + name);
    CHECK(members.empty() == (std::string_view(name) == "orders-compressed.npz"));
    std::size_t unchanged = 0;
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      if (members.contains(bit / 8)) continue;
      std::string flipped = file;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      const auto after = all_values(flipped);
      if (!after) continue;
      if (*after != before) FAIL_CHECK("byte ", bit / 8, " bit ", bit % 8);
      ++unchanged;
    }
    CHECK(unchanged > 100);  // times, versions, attributes
    CHECK(unchanged < 2000);
  }
}

TEST_CASE("what NumPy's files cannot hold is not written") {
  const TempFolder folder;
  OutputWeights weights;
  const auto why = [&](const char* writer, const std::string& name, DType dtype) {
    weights.writer = writer;
    weights.tensors.push_back({{.name = name, .dtype = dtype, .shape = {1}}, Literal{"12"}});
    return message_of([&] { write_checkpoint_file(folder / "f", weights, {}); });
  };
  CHECK(contains(why("npz", "a", DType::kBF16), "npy has no type for BF16"));
  weights.tensors.clear();
  CHECK(contains(why("npz", "../a", DType::kI16), "expected a plain name"));
  weights.tensors.clear();
  CHECK(why("npz", "a", DType::kI16) == "(nothing thrown)");
  CHECK(contains(why("npz", "a", DType::kI16), "two arrays called 'a'"));
  CHECK(contains(why("npy", "b", DType::kI16), "3 tensors, an npy holds exactly one"));
  CHECK(folder.names() == std::vector<std::string>{"f"});
}

TEST_CASE("a reader at the address of one that is gone reads its own tensor") {
  const TempFolder folder;
  test::write_file(folder / "f", "");
  const InputFile file = InputFile::open(folder / "f");
  const auto last = std::make_shared<UnpackedTensor>();
  for (int i = 0; i < 10; ++i) {
    const auto unpack = [i](const InputFile&, MutableBytes out) {
      std::ranges::fill(out, static_cast<std::byte>(i));
    };
    std::array<std::byte, 2> part{};
    unpacking_reader(8, unpack, last)->read(file, 3, part);
    CHECK(part[0] == static_cast<std::byte>(i));
  }
}

}  // namespace
}  // namespace masque::store
