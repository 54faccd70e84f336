// npz: files of NumPy read as what they are, written again byte by byte, and damaged.
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "store/numpy/array.hpp"
#include "store/numpy/npy.hpp"
#include "support/make_zip.hpp"
#include "support/message.hpp"
#include "support/npz_oracle.hpp"
#include "support/rules.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::make_zip;
using test::MemoryFile;
using test::message_of;
using test::TempFolder;

const std::string kGood = MASQUE_TEST_DATA "/npy/good";
constexpr std::uint64_t kMost = 1 << 20;

using Arrays = std::vector<Array>;

Checked<Arrays> read(std::string_view file, std::uint64_t most = kMost) {
  return read_arrays_checked(MemoryFile(file).open(), most);
}

std::string sha256_of(const Array& array) {
  const auto hasher = make_sha256();
  hasher->add(array.data);
  return hasher->digest();
}

bool same(const Arrays& a, const Arrays& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Array& x, const Array& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape && x.data == y.data;
  });
}

std::string npy(DType dtype, const Shape& shape, std::string_view data) {
  return write_npy_header(dtype, shape) + std::string(data);
}

std::vector<std::string> good_npz() {
  std::vector<std::string> names = test::names_in(kGood);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".npz"); });
  REQUIRE(names.size() >= 7);
  return names;
}

TEST_CASE("npz files of NumPy read as what they are") {
  std::size_t arrays = 0;
  for (const std::string& name : good_npz()) {
    CAPTURE(name);
    auto rows = test::read_table(kGood + "/arrays.tsv", 5);
    std::erase_if(rows, [&](const test::Row& row) { return row[0] != name; });
    const Arrays found = read_arrays(kGood + "/" + name, kMost);
    REQUIRE(found.size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i, ++arrays) {
      CHECK(found[i].name == rows[i][1]);
      CHECK(dtype_name(found[i].dtype) == rows[i][2]);
      CHECK(shape_text(found[i].shape) == rows[i][3]);
      CHECK(sha256_of(found[i]) == rows[i][4]);
      CHECK(found[i].notes.empty());
      CHECK(same({read_array(kGood + "/" + name, rows[i][1], kMost)}, {found[i]}));
    }
    CHECK(test::wrong_npz(test::read_file(kGood + "/" + name)) == "");
  }
  CHECK(arrays > 110);
}

TEST_CASE("an npz written from arrays equals that of numpy.savez") {
  const TempFolder folder;
  for (const char* name : {"savez.npz", "savez-none.npz"}) {
    write_npz(folder / "f.npz", read_arrays(kGood + "/" + name, kMost));
    CHECK(test::read_file(folder / "f.npz") == test::read_file(kGood + "/" + name));
  }
  const Arrays compressed = read_arrays(kGood + "/savez-compressed.npz", kMost);
  write_npz(folder / "f.npz", compressed);
  CHECK(same(read_arrays(folder / "f.npz", kMost), compressed));
  CHECK(test::wrong_npz(test::read_file(folder / "f.npz")) == "");
}

TEST_CASE("an npz cut anywhere is refused") {
  for (const char* name : {"savez-compressed.npz", "zip64-records.npz", "stream.npz"}) {
    const std::string file = test::read_file(kGood + "/" + name);
    for (std::size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      REQUIRE(std::holds_alternative<Violation>(read(file.substr(0, size))));
    }
  }
}

TEST_CASE("any bit of an npz flipped is refused or changes nothing") {
  const std::string one = npy(DType::kF32, {2}, "\x01\x02\x03\x04\x05\x06\x07\x08");
  const std::string two = npy(DType::kI8, {}, "x");
  const std::string stored = make_zip({{.data = one}, {.name = "b.npy", .data = two}}).text;
  for (const std::string& file :
       {stored, test::read_file(kGood + "/stream.npz"), test::read_file(kGood + "/no-zip64.npz"),
        test::read_file(kGood + "/zip64-records.npz"),
        test::read_file(kGood + "/savez-compressed.npz")}) {
    const Arrays before = std::get<Arrays>(read(file));
    int unchanged = 0;
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      std::string flipped = file;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      const auto after = read(flipped);
      if (std::holds_alternative<Violation>(after)) continue;
      if (!same(before, std::get<Arrays>(after))) FAIL_CHECK("byte ", bit / 8, " bit ", bit % 8);
      ++unchanged;
    }
    CHECK(unchanged > 100);  // times, versions, attributes
    CHECK(unchanged < 1500);
  }
}

TEST_CASE("a broken npy inside an npz is reported with its member and its place") {
  const std::string text = npy(DType::kF32, {2}, "\x01\x02\x03\x04\x05\x06\x07");
  const auto zip = make_zip({{.data = text}});
  const Violation violation = std::get<Violation>(read(zip.text));
  CHECK(violation.rule == "size-mismatch");
  CHECK(violation.tensor == "a.npy");
  CHECK(violation.offset == 30 + 5 + 128);
}

TEST_CASE("a zip file with other members is no npz") {
  for (const char* name : {"archive/data.pkl", ".npy", "a.NPY"}) {
    const auto zip = make_zip({{.data = npy(DType::kI8, {}, "x")}, {.name = name}});
    CHECK(std::get<Violation>(read(zip.text)).rule == "npz-member");
  }
}

TEST_CASE("arrays together have at most the bytes that were allowed") {
  const std::string one = npy(DType::kI8, {3}, "abc");
  const auto zip = make_zip({{.data = one}, {.name = "b.npy", .data = one}});
  CHECK(std::holds_alternative<Arrays>(read(zip.text, 6)));
  const Violation violation = std::get<Violation>(read(zip.text, 5));
  CHECK(violation.rule == "limit-bytes");
  CHECK(violation.tensor == "b.npy");
}

TEST_CASE("every rule of the sources of arrays has a test") {
  CHECK(test::rules_in(test::read_file(MASQUE_SOURCES "/store/numpy/array.cpp")) ==
        std::set<std::string>{"limit-bytes"});
  CHECK(test::rules_in(test::read_file(MASQUE_SOURCES "/store/numpy/npz.cpp")) ==
        std::set<std::string>{"npz-member", "npz-rest"});
}

TEST_CASE("a bomb is refused by what is allowed, by its size or by its ratio") {
  const std::string file = test::read_file(kGood + "/zeros.npz");  // 800,128 bytes in 1 KiB
  CHECK(file.size() < 1200);
  CHECK(std::get<Violation>(read(file, 799'999)).rule == "limit-bytes");
  const std::uint64_t directory = file.size() - 22 - 46 - 9;
  const auto announced = [&](std::uint64_t bytes) {  // in the ZIP64 field and in the directory
    std::string out = file;
    out.replace(30 + 9 + 4, 8, test::number(bytes, 8));
    return out.replace(directory + 24, 4, test::number(bytes, 4));
  };
  CHECK(same(std::get<Arrays>(read(announced(800'128))), std::get<Arrays>(read(file))));
  CHECK(std::get<Violation>(read(announced(800'127))).rule == "size-mismatch");
  CHECK(std::get<Violation>(read(announced(800'129))).rule == "npz-rest");
  CHECK(std::get<Violation>(read(announced(2'000'000))).rule == "zip-ratio");
}

TEST_CASE("bytes after an array's data are refused in an npz") {
  const auto zip = make_zip({{.data = npy(DType::kI8, {3}, "abcd")}});
  const Violation violation = std::get<Violation>(read(zip.text));
  CHECK(violation.rule == "npz-rest");
  CHECK(violation.offset == 30 + 5 + 128 + 3);
}

TEST_CASE("an array is requested by its name") {
  const std::string file = kGood + "/savez-compressed.npz";
  CHECK(read_array(file, "größe/埋め込み", kMost).shape == Shape{3});
  CHECK(read_array(file, "w", kMost).dtype == DType::kF64);
  CHECK(contains(message_of([&] { read_array(file, "fortrun", kMost); }),
                 "savez-compressed.npz: no array 'fortrun'; did you mean 'fortran'?"));
  CHECK(contains(message_of([&] { read_array(file, "", kMost); }), "holds 5 arrays"));
  CHECK(contains(message_of([&] { read_array(kGood + "/scalar.npy", "w", kMost); }),
                 "holds one array without a name"));
  CHECK(contains(message_of([&] { read_array(kGood + "/savez-none.npz", "", kMost); }),
                 "holds 0 arrays"));
  const TempFolder folder;
  write_npz(folder / "one.npz", Arrays{{"x", DType::kI8, {}, {std::byte{7}}}});
  CHECK(read_array(folder / "one.npz", "", kMost).name == "x");
  test::write_file(folder / "other", "GGUF");
  CHECK(contains(message_of([&] { read_arrays(folder / "other", kMost); }), "other: npy-magic"));
}

TEST_CASE("what an npz cannot hold is not written, and nothing is left behind") {
  const TempFolder folder;
  const auto why = [&](const Arrays& arrays) {
    return message_of([&] { write_npz(folder / "f.npz", arrays); });
  };
  const Array good{"a", DType::kI8, {}, {std::byte{7}}};
  for (const char* name : {"", "/a", "../a", "a/", "a\\b", "\xFF"}) {
    Array bad = good;
    bad.name = name;
    CHECK(contains(why({good, bad}), "expected a plain name"));
  }
  CHECK(contains(why({good, good}), "two arrays called 'a'"));
  CHECK(contains(why({{"b", DType::kF8E4M3, {}, {std::byte{7}}}}), "npy has no type for F8_E4M3"));
  CHECK(folder.names().empty());
}

}  // namespace
}  // namespace masque::store
