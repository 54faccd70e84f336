// One golden file per way to break a rule: each is refused by its rule, at its tensor and byte.
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file/file.hpp"
#include "store/checkpoint.hpp"
#include "store/safetensors/safetensors.hpp"
#include "support/message.hpp"
#include "support/naive_json.hpp"
#include "support/naive_safetensors.hpp"
#include "support/rules.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

const std::string kBad = MASQUE_TEST_DATA "/safetensors/bad";

std::vector<test::Row> expected_rows() { return test::read_table(kBad + "/expected.tsv", 5); }

std::string path_of(const std::string& name) {
  const std::string folder = join(kBad, name);
  return is_folder(folder) ? folder : folder + ".safetensors";
}

TEST_CASE("every bad file is refused by its rule at its tensor and byte") {
  for (const test::Row& row : expected_rows()) {
    const auto opened = open_checked(path_of(row[0]));
    const auto* violation = std::get_if<Violation>(&opened);
    if (violation == nullptr) {
      FAIL_CHECK(row[0], " is accepted");
      continue;
    }
    const std::string tensor = test::naive_json(row[2], 1)->text;
    const std::string found =
        fmt::format("{} '{}' byte {} of {}", violation->rule, violation->tensor, violation->offset,
                    base_name(violation->file));
    const std::string expected =
        fmt::format("{} '{}' byte {} of {}", row[1], tensor, row[3], row[4]);
    CAPTURE(row[0]);
    CHECK(found == expected);
    CHECK_FALSE(violation->message.empty());
    const std::string line = test::message_of([&] { open_checkpoint(path_of(row[0])); });
    CHECK(test::contains(line, violation->message));
    CHECK(line.find_first_of("\n\x1b") == std::string::npos);
  }
}

TEST_CASE("the naive validator refuses every bad file too") {
  for (const test::Row& row : expected_rows()) {
    if (is_folder(join(kBad, row[0]))) continue;
    CAPTURE(row[0]);
    CHECK_FALSE(test::naive_safetensors(test::read_file(path_of(row[0]))).has_value());
  }
}

TEST_CASE("every golden file is expected and every expected one is there") {
  std::set<std::string> files = {"expected.tsv"};
  for (const test::Row& row : expected_rows()) files.insert(base_name(path_of(row[0])));
  const auto names = test::names_in(kBad);
  CHECK(files == std::set<std::string>(names.begin(), names.end()));
}

// Rules about amounts, with small amounts.
struct LimitCase {
  const char* rule;
  SafetensorsLimits limits;
  const char* good;  ///< just within the limit; data for both is one byte
  const char* bad;
  const char* tensor;
  std::size_t byte;  ///< in the bad header
};

const LimitCase kLimitCases[] = {
    {"limit-tensors",
     {.tensors = 1},
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{}})",
     "",
     53},
    {"limit-name",
     {.name_bytes = 3},
     R"({"abc":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     R"({"abcd":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     "",
     1},
    {"limit-rank",
     {.rank = 2},
     R"({"a":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]}})",
     R"({"a":{"dtype":"U8","shape":[1,1,1],"data_offsets":[0,1]}})",
     "a",
     32},
    {"limit-metadata",
     {.metadata_bytes = 6},
     R"({"__metadata__":{"a":"b","cd":"ef"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     R"({"__metadata__":{"a":"b","cd":"efg"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     "",
     30},
};

TEST_CASE("every limit is kept to the last unit") {
  for (const LimitCase& row : kLimitCases) {
    const std::string_view good = row.good;
    const std::string_view bad = row.bad;
    const auto accepted = parse_safetensors_header(good, 8 + good.size() + 1, row.limits);
    const auto refused = parse_safetensors_header(bad, 8 + bad.size() + 1, row.limits);
    CAPTURE(row.rule);
    CHECK(std::holds_alternative<SafetensorsHeader>(accepted));
    const auto* violation = std::get_if<Violation>(&refused);
    REQUIRE(violation != nullptr);
    CHECK(violation->rule == row.rule);
    CHECK(violation->tensor == row.tensor);
    CHECK(violation->offset == 8 + row.byte);
  }
}

TEST_CASE("the length of the header is limited to the last byte") {
  const std::string eight = {16, 0, 0, 0, 0, 0, 0, 0};
  const SafetensorsLimits limits{.header_bytes = 16};
  CHECK(std::get<std::uint64_t>(safetensors_header_length(as_bytes(eight), 24, limits)) == 16);
  const SafetensorsLimits less{.header_bytes = 15};
  CHECK(std::get<Violation>(safetensors_header_length(as_bytes(eight), 24, less)).rule ==
        "header-too-large");
  CHECK(std::get<Violation>(safetensors_header_length(as_bytes(eight), 23, limits)).rule ==
        "header-beyond-file");
}

TEST_CASE("every rule of the sources has a test") {
  std::set<std::string> tested;
  for (const test::Row& row : expected_rows()) tested.insert(row[1]);
  for (const LimitCase& row : kLimitCases) tested.insert(row.rule);
  tested.insert("header-start");  // tolerated: tests/cli/untrusted.transcript
  std::set<std::string> written;
  for (const char* file : {"safetensors/safetensors.cpp", "shard_index.cpp", "format.cpp",
                           "checkpoint.cpp", "safetensors/safetensors_format.cpp"}) {
    written.merge(test::rules_in(test::read_file(std::string(MASQUE_SOURCES "/store/") + file)));
  }
  CHECK(written.size() >= 30);
  CHECK(written == tested);
}

}  // namespace
}  // namespace masque::store
