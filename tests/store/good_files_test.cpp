// Files of the reference library read as what they are, and their headers are written again.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/digest/hash.hpp"
#include "base/file/file.hpp"
#include "store/checkpoint.hpp"
#include "store/safetensors/safetensors.hpp"
#include "support/naive_json.hpp"
#include "support/naive_safetensors.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

const std::string kGood = MASQUE_TEST_DATA "/safetensors/good";

std::string unquote(const std::string& json) { return test::naive_json(json, 1).value().text; }

/// Names of the golden files without ".safetensors".
std::vector<std::string> good_files() {
  std::vector<std::string> stems;
  for (const std::string& name : test::names_in(kGood)) {
    if (name.ends_with(".safetensors")) stems.push_back(name.substr(0, name.size() - 12));
  }
  REQUIRE(stems.size() >= 9);
  return stems;
}

Checkpoint open_good(const std::string& stem) {
  return open_checkpoint(kGood + "/" + stem + ".safetensors");
}

/// The rows of a table that are about a file.
std::vector<test::Row> rows_of(const char* table, std::size_t columns, const std::string& stem) {
  auto rows = test::read_table(join(kGood, table), columns);
  std::erase_if(rows, [&](const test::Row& row) { return row[0] != stem; });
  return rows;
}

std::string sha256_of(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  checkpoint.read(tensor, 0, bytes);
  const auto hasher = make_sha256();
  hasher->add(bytes);
  return hasher->digest();
}

TEST_CASE("files of the reference library list their tensors in data order") {
  std::size_t tensors = 0;
  for (const std::string& stem : good_files()) {
    const Checkpoint checkpoint = open_good(stem);
    const auto rows = rows_of("tensors.tsv", 7, stem);
    CAPTURE(stem);
    CHECK(checkpoint.notes().empty());
    REQUIRE(checkpoint.tensors().size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i, ++tensors) {
      const TensorInfo& tensor = checkpoint.tensors()[i];
      const test::Row& row = rows[i];
      CAPTURE(row[1]);
      CHECK(tensor.name == unquote(row[1]));
      CHECK(dtype_name(tensor.dtype) == row[2]);
      CHECK(shape_text(tensor.shape) == row[3]);
      CHECK(std::to_string(tensor.begin) == row[4]);
      CHECK(std::to_string(tensor.end) == row[5]);
      CHECK(sha256_of(checkpoint, tensor) == row[6]);
      CHECK(checkpoint.find(tensor.name) == &tensor);
    }
  }
  CHECK(tensors > 80);
}

TEST_CASE("files of the reference library keep their metadata") {
  for (const std::string& stem : good_files()) {
    const Checkpoint checkpoint = open_good(stem);
    const Metadata& metadata = checkpoint.files()[0].content.metadata;
    const auto rows = rows_of("metadata.tsv", 3, stem);
    CAPTURE(stem);
    REQUIRE(metadata.size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(metadata[i].first == unquote(rows[i][1]));
      CHECK(metadata[i].second == unquote(rows[i][2]));
    }
  }
}

TEST_CASE("a header written from the tensors equals that of the reference library") {
  for (const std::string& stem : good_files()) {
    const Checkpoint checkpoint = open_good(stem);
    const FileContent& content = checkpoint.files()[0].content;
    const std::string file = test::read_file(checkpoint.path());
    CAPTURE(stem);
    CHECK(write_safetensors_header(content.tensors, content.metadata) ==
          file.substr(0, content.data_begin));
    // Any order becomes the reference writer's by sorting.
    std::vector<TensorInfo> sorted(content.tensors.rbegin(), content.tensors.rend());
    std::sort(sorted.begin(), sorted.end(), safetensors_before);
    CHECK(write_safetensors_header(sorted, content.metadata) == file.substr(0, content.data_begin));
  }
}

TEST_CASE("the naive validator accepts what the reference library writes") {
  for (const std::string& stem : good_files()) {
    const auto naive =
        test::naive_safetensors(test::read_file(kGood + "/" + stem + ".safetensors"));
    CAPTURE(stem);
    REQUIRE(naive.has_value());
    CHECK(naive->size() == open_good(stem).tensors().size());
  }
}

TEST_CASE("a written header is padded so that data begins at any power of two") {
  const TensorInfo tensor{.name = "a", .dtype = DType::kF32, .shape = {2, 3}};
  std::set<std::size_t> sizes;
  for (std::uint64_t alignment = 8; alignment <= 8192; alignment *= 2) {
    const std::string header = write_safetensors_header({tensor}, {{"k", "v"}}, alignment);
    CAPTURE(alignment);
    CHECK(header.size() % alignment == 0);
    const auto file = header + std::string(24, 'x');
    const auto tensors = test::naive_safetensors(file);
    REQUIRE(tensors.has_value());
    CHECK(tensors->at(0).begin == header.size());
    CHECK(header[8] == '{');
    sizes.insert(header.size());
  }
  CHECK(sizes.size() > 5);
}

TEST_CASE("odd but legal headers are read with a word about them") {
  const auto parse = [](std::string_view json, std::uint64_t data) {
    return value_or_throw(parse_safetensors_header(json, 8 + json.size() + data));
  };
  CHECK(parse(" \n\t\r{} \n", 0).leading_space);
  CHECK_FALSE(parse("{}   ", 0).leading_space);
  CHECK_FALSE(parse("{\"__metadata__\":null}", 0).has_metadata);
  CHECK(parse("{\"__metadata__\":{}}", 0).has_metadata);
  const auto unknown = parse(
      R"({"a":{"x":[{"y":1}],"dtype":"U8","z":null,"shape":[],"w":{"dtype":3},"data_offsets":[0,1],)"
      R"("v":"s"}})",
      1);
  CHECK(unknown.unknown_fields == 4);
  CHECK(unknown.unknown_field == "x");
  CHECK(unknown.tensors.at(0).elements() == 1);
  const auto unordered = parse(R"({"b":{"data_offsets":[1,3],"shape":[1],"dtype":"F16"},)"
                               R"("a":{"shape":[1],"dtype":"I8","data_offsets":[0,1]}})",
                               3);
  CHECK(unordered.tensors.at(0).name == "a");
  CHECK(unordered.tensors.at(1).name == "b");
  CHECK(unordered.tensors.at(1).begin == unordered.data_begin + 1);
  // Tensors without bytes may stand wherever the data has got to.
  const auto empties = parse(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("n":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
                             R"("m":{"dtype":"F64","shape":[9,0],"data_offsets":[0,0]}})",
                             2);
  CHECK(empties.tensors.at(0).name == "m");
  CHECK(empties.tensors.at(2).name == "n");
}

}  // namespace
}  // namespace masque::store
