// npy: files of NumPy and broken ones, one per rule; damaged ones agree with the naive reading.
#include "store/numpy/npy.hpp"

#include <unistd.h>

#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "store/numpy/array.hpp"
#include "support/message.hpp"
#include "support/npy_oracle.hpp"
#include "support/rules.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;

const std::string kNpy = MASQUE_TEST_DATA "/npy";
constexpr std::uint64_t kMost = 1 << 20;

const std::string kText = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

std::string with_text(const std::string& text, std::size_t data = 24) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text.size() % 256);
  file += static_cast<char>(text.size() / 256);
  return file + text + std::string(data, '\x5A');
}

/// kText with a part replaced.
std::string with(const std::string& part, const std::string& by) {
  std::string text = kText;
  return text.replace(text.find(part), part.size(), by);
}

/// The file with bytes from `at` on replaced.
std::string patched(std::string file, std::size_t at, std::string_view bytes) {
  return file.replace(at, bytes.size(), bytes);
}

std::string sha256_of(const Array& array) {
  const auto hasher = make_sha256();
  hasher->add(array.data);
  return hasher->digest();
}

struct BadCase {
  const char* rule;
  std::string file;
  std::uint64_t byte;
};

const BadCase kBadCases[] = {
    {"too-short", "", 0},
    {"too-short", "\x93NUM", 0},
    {"too-short", with_text(kText).substr(0, 9), 0},
    {"too-short", patched(with_text("{}", 0).substr(0, 11), 6, "\x02"), 0},
    {"npy-magic", "\x93NUMPX", 0},
    {"npy-magic", patched(with_text(kText), 0, "\x92"), 0},
    {"npy-version", patched(with_text(kText), 6, "\x04"), 6},
    {"npy-version", patched(with_text(kText), 6, std::string("\x00", 1)), 6},
    {"npy-version", patched(with_text(kText), 7, "\x01"), 6},
    {"header-beyond-file", with_text(kText, 0).substr(0, 60), 8},
    {"header-beyond-file", patched(with_text(kText), 6, "\x02"), 8},  // four bytes of length
    {"header-too-large", with_text(kText + std::string(9950, ' ')), 8},
    {"npy-header", with_text(""), 10},
    {"npy-header", with_text("[1]"), 10},
    {"npy-header", with_text("{"), 11},
    {"npy-header", with_text("{,}"), 11},
    {"npy-header", with_text("{descr: '<f4'}"), 11},
    {"npy-header", with_text("{'descr' '<f4'}"), 19},
    {"npy-header", with_text("{'descr: 1}"), 11},
    {"npy-header", with_text("{'de\\x73cr': '<f4'}"), 11},
    {"npy-header", with_text("{'descr': '<f4' 'shape': ()}"), 26},
    {"npy-header", with_text(kText + " x"), 10 + kText.size() + 1},
    {"npy-header", with_text(kText + std::string(1, '\0')), 10 + kText.size()},
    {"npy-header", with_text(with("False", "False1")), 49},
    {"missing-field", with_text("{}"), 10},
    {"missing-field", with_text(with("'descr': '<f4', ", "")), 10},
    {"missing-field", with_text(with("'fortran_order': False, ", "")), 10},
    {"missing-field", with_text(with(", 'shape': (2, 3), ", "")), 10},
    {"duplicate-key", with_text(with("(2, 3),", "(2, 3), \"shape\": (2, 3)")), 68},
    {"unknown-field", with_text(with("'shape'", "'Shape'")), 51},
    {"unknown-dtype", with_text(with("'<f4'", "4")), 20},
    {"unknown-dtype", with_text(with("'<f4'", "''")), 20},
    {"unknown-dtype", with_text(with("'<f4'", "'<'")), 20},
    {"unknown-dtype", with_text(with("'<f4'", "'<<f4'")), 20},
    {"unknown-dtype", with_text(with("'<f4'", "'<f3'")), 20},
    {"unknown-dtype", with_text(with("'<f4'", "'<F4'")), 20},
    {"unknown-dtype", with_text(with("'<f4'", "('<f4', (2,))")), 20},
    {"unsupported-dtype", with_text(with("'<f4'", "[('a', '<f4')]")), 20},
    {"unsupported-dtype", with_text(with("<f4", ">c16")), 20},
    {"object-array", with_text(with("<f4", "|O")), 20},
    {"object-array", with_text(with("<f4", "|O8")), 20},
    {"bad-bool", with_text(with("False", "0")), 44},
    {"bad-bool", with_text(with("False", "'False'")), 44},
    {"bad-bool", with_text(with("False", "")), 44},
    {"not-a-tuple", with_text(with("(2, 3)", "[2, 3]")), 60},
    {"not-a-tuple", with_text(with("(2, 3)", "6")), 60},
    {"not-a-tuple", with_text(with("(2, 3)", "(6)")), 60},
    {"not-a-tuple", with_text(with("(2, 3)", "(2 3)")), 60},
    {"not-a-tuple", with_text(with("(2, 3)", "(2.5,)")), 60},
    {"bad-number", with_text(with("(2, 3)", "(-2, 3)")), 61},
    {"bad-number", with_text(with("(2, 3)", "(2, 03)")), 64},
    {"bad-number", with_text(with("(2, 3)", "(True, 3)")), 61},
    {"bad-number", with_text(with("(2, 3)", "(,)")), 61},
    {"bad-number", with_text(with("(2, 3)", "(18446744073709551616,)")), 61},
    {"shape-overflow", with_text(with("(2, 3)", "(4294967296, 4294967296)")), 10},
    {"shape-overflow", with_text(with("(2, 3)", "(1152921504606846976,)")), 10},
    {"shape-overflow", with_text(with("(2, 3)", "(4294967296, 4294967296, 0)")), 10},
    {"size-mismatch", with_text(kText, 23), 10 + kText.size()},
    {"size-mismatch", with_text(with("(2, 3)", "(576460752303423487,)")), 46 + kText.size()},
};

Violation refused(const std::string& file) {
  const auto parsed = parse_npy_header(as_bytes(file), file.size());
  const auto* violation = std::get_if<Violation>(&parsed);
  return violation == nullptr ? Violation{"(accepted)", "x"} : *violation;
}

TEST_CASE("every bad npy is refused by its rule at its byte, and by the naive reading") {
  for (const BadCase& row : kBadCases) {
    CAPTURE(row.file);
    const Violation violation = refused(row.file);
    CHECK(
        fmt::format("{} {}", violation.rule, violation.offset) ==
        fmt::format("{} {}", row.rule,
                    row.rule == std::string("size-mismatch") ? row.file.find('}') + 1 : row.byte));
    CHECK_FALSE(violation.message.empty());
    CHECK(test::wrong_npy(row.file) == "");
  }
}

TEST_CASE("types that are not read are refused by name") {
  for (const test::Row& row : test::read_table(kNpy + "/bad/rules.tsv", 2)) {
    CAPTURE(row[0]);
    const auto array = read_npy(InputFile::open(kNpy + "/bad/" + row[0]), kMost);
    const auto* violation = std::get_if<Violation>(&array);
    REQUIRE(violation != nullptr);
    CHECK(violation->rule == row[1]);
    CHECK(violation->file == kNpy + "/bad/" + row[0]);
  }
  const auto why = [](const char* file) {
    return message_of([&] { read_arrays(kNpy + "/bad/" + file, kMost); });
  };
  CHECK(contains(why("object.npy"), "a pickle: never read"));
  CHECK(contains(why("bfloat16.npy"), "bfloat16"));
  CHECK(contains(why("complex128.npy"), "complex128"));
  CHECK(contains(why("structured.npy"), "structured"));
  CHECK(contains(why("text.npy"), "text"));
}

TEST_CASE("the limits of an npy are kept to the last unit") {
  const std::string file = with_text(kText);
  const auto rule = [&](const NpyLimits& limits) {
    const auto parsed = parse_npy_header(as_bytes(file), file.size(), limits);
    const auto* violation = std::get_if<Violation>(&parsed);
    return violation == nullptr ? "" : violation->rule;
  };
  CHECK(rule({.rank = 2}) == "");
  CHECK(rule({.rank = 1}) == "limit-rank");
  CHECK(rule({.header_bytes = kText.size()}) == "");
  CHECK(rule({.header_bytes = kText.size() - 1}) == "header-too-large");
  const auto read = [&](std::uint64_t most) {
    return read_npy(test::MemoryFile(file).open(), most);
  };
  CHECK(std::holds_alternative<Array>(read(24)));
  CHECK(std::get<Violation>(read(23)).rule == "limit-bytes");
}

TEST_CASE("every rule of the npy sources has a test") {
  std::set<std::string> tested = {"limit-rank"};
  for (const BadCase& row : kBadCases) tested.insert(row.rule);
  const auto written = test::rules_in(test::read_file(MASQUE_SOURCES "/store/numpy/npy.cpp"));
  CHECK(written.size() >= 15);
  CHECK(written == tested);
}

TEST_CASE("files of NumPy read as what they are") {
  std::size_t files = 0;
  for (const test::Row& row : test::read_table(kNpy + "/good/arrays.tsv", 5)) {
    if (!row[0].ends_with(".npy")) continue;
    CAPTURE(row[0]);
    const Array array = read_array(kNpy + "/good/" + row[0], "", kMost);
    CHECK(array.name.empty());
    CHECK(array.notes.empty());
    CHECK(dtype_name(array.dtype) == row[2]);
    CHECK(shape_text(array.shape) == row[3]);
    CHECK(sha256_of(array) == row[4]);
    CHECK(test::wrong_npy(test::read_file(kNpy + "/good/" + row[0])) == "");
    ++files;
  }
  CHECK(files >= 11);
}

TEST_CASE("an npy written from an array equals NumPy's file") {
  const TempFolder folder;
  for (const char* name : {"row-major.npy", "scalar.npy"}) {
    write_npy(folder / name, read_array(kNpy + "/good/" + name, "", kMost));
    CHECK(test::read_file(folder / name) == test::read_file(kNpy + "/good/" + name));
  }
}

TEST_CASE("arrays of every type and shape, order and byte order agree with the naive reading") {
  int files = 0;
  for (const char* type :
       {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8"}) {
    for (const char* shape : {"()", "(0,)", "(5,)", "(3, 0, 2)", "(2, 3, 4)", "(4, 1, 3)"}) {
      for (const char* order : {"True", "False"}) {
        for (const char* sign : {"<", ">", "=", "|", ""}) {
          std::string file =
              with_text(fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': {}}}", sign,
                                    type, order, shape),
                        192);
          for (std::size_t i = 0; i < 192; ++i)
            file.end()[-1 - static_cast<long>(i)] = static_cast<char>(i);
          CAPTURE(file);
          CHECK(test::wrong_npy(file) == "");
          REQUIRE(test::naive_npy(file).has_value());
          ++files;
        }
      }
    }
  }
  CHECK(files == 13 * 6 * 2 * 5);
}

TEST_CASE("an array of many pieces is put in order") {
  // Pieces are of 1 MiB: the header's rest, whole pieces and a last one. A matrix is read by whole
  // columns, unless one is larger than a piece.
  for (const auto& size : std::vector<std::pair<std::string, std::size_t>>{
           {"701, 3, 251", 527'853}, {"1409, 503", 708'727}, {"300001, 2", 600'002}}) {
    const std::string& shape = size.first;
    const std::size_t elements = size.second;
    CAPTURE(shape);
    std::string file =
        with_text(fmt::format("{{'descr': '>u4', 'fortran_order': True, 'shape': ({})}}", shape),
                  elements * 4);
    for (std::size_t i = 0; i < elements * 4; ++i)
      file.end()[-1 - static_cast<long>(i)] = static_cast<char>(i * 7 + i / 251);
    CHECK(test::wrong_npy(file) == "");
  }
}

TEST_CASE("bytes after the data are noted, as NumPy lets them pass") {
  const std::string file = with_text(kText, 27);
  const Array array = std::get<Array>(read_npy(test::MemoryFile(file).open(), kMost));
  CHECK(array.data.size() == 24);
  CHECK(array.notes == std::vector<std::string>{"3 bytes after the data"});
}

TEST_CASE("an npy cut anywhere is refused") {
  for (const char* name : {"row-major.npy", "version-3.npy", "odd-spelling.npy"}) {
    const std::string file = test::read_file(kNpy + "/good/" + name);
    for (std::size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      REQUIRE(refused(file.substr(0, size)).rule != "(accepted)");
      REQUIRE(test::wrong_npy(file.substr(0, size)) == "");
    }
  }
}

TEST_CASE("any bit of an npy flipped is refused or gives what the naive reading gives") {
  for (const char* name : {"column-major.npy", "version-2.npy", "python-2.npy"}) {
    const std::string file = test::read_file(kNpy + "/good/" + name);
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      std::string flipped = file;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      const std::string wrong = test::wrong_npy(flipped);
      if (!wrong.empty()) FAIL_CHECK(name, " byte ", bit / 8, " bit ", bit % 8, ": ", wrong);
    }
  }
}

TEST_CASE("any byte of an npy's header changed is refused or gives what the naive reading gives") {
  const std::string file = with_text(kText);
  for (std::size_t byte = 0; byte < file.size() - 24; ++byte) {
    for (int value = 0; value < 256; ++value) {
      const std::string wrong =
          test::wrong_npy(patched(file, byte, std::string(1, static_cast<char>(value))));
      if (!wrong.empty()) FAIL_CHECK("byte ", byte, " set to ", value, ": ", wrong);
    }
  }
}

TEST_CASE("a huge announced array is refused before memory is allocated") {
  const TempFolder folder;
  const std::string text = with("(2, 3)", "(1099511627776,)");
  test::write_file(folder / "f.npy", with_text(text));
  REQUIRE(::truncate((folder / "f.npy").c_str(), off_t{1} << 43) == 0);
  CHECK(contains(message_of([&] { read_arrays(folder / "f.npy", kMost); }), "limit-bytes"));
}

TEST_CASE("data come from a function, on any number of threads") {
  const TempFolder folder;
  const Shape shape = {1000, 700};
  for (const int threads : {1, 3}) {
    write_npy(
        folder / "f.npy", DType::kI32, shape,
        [](std::uint64_t offset, MutableBytes out) {
          MASQUE_CHECK(offset % (1 << 20) == 0 && out.size() <= 1 << 20);
          for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = static_cast<std::byte>((offset + i) * 11 + (offset + i) / 257);
          }
        },
        threads);
    const Array array = read_array(folder / "f.npy", "", 1 << 23);
    CHECK(array.shape == shape);
    bool same = true;
    for (std::size_t i = 0; i < array.data.size(); ++i) {
      same = same && array.data[i] == static_cast<std::byte>(i * 11 + i / 257);
    }
    CHECK(same);
  }
}

TEST_CASE("what npy cannot hold is not written, and nothing is left behind") {
  const TempFolder folder;
  const auto fill = [](std::uint64_t, MutableBytes) {};
  int refusals = 0;
  for (const DType dtype : all_dtypes()) {
    if (npy_descr(dtype)) continue;
    const std::string why = message_of([&] { write_npy(folder / "f.npy", dtype, {8}, fill); });
    CHECK(contains(why, fmt::format("f.npy: npy has no type for {}", dtype_name(dtype))));
    ++refusals;
  }
  CHECK(refusals == 9);
  const auto why = [&](const Shape& shape) {
    return message_of([&] { write_npy(folder / "f.npy", DType::kF32, shape, fill); });
  };
  CHECK(contains(why(Shape(65, 1)), "65 dimensions"));
  CHECK(contains(why({1ULL << 40, 1ULL << 40}), "too large"));
  CHECK(contains(why({1ULL << 58}), "f.npy: "));
  CHECK(folder.names().empty());
  CHECK(why(Shape(64, 1)) == "(nothing thrown)");
}

}  // namespace
}  // namespace masque::store
