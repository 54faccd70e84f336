// GGUF files that break a rule, and good ones damaged in every small way: refused, or right by the
// naive reading too.
#include <set>

#include <doctest/doctest.h>

#include "store/checkpoint.hpp"
#include "support/gguf_oracle.hpp"
#include "support/make_gguf.hpp"
#include "support/message.hpp"
#include "support/rules.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::gguf_array;
using test::gguf_tensor;
using test::gguf_text;
using test::gguf_value;
using test::make_gguf;
using test::message_of;
using test::NaiveGguf;
using test::parse_gguf_text;
using test::read_file;
using test::rules_in;
using test::TempFolder;
using test::u32;
using test::u64;
using test::write_file;
using test::wrong_gguf;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;

struct BadCase {
  const char* rule;
  std::string file;
};

std::vector<BadCase> bad_cases() {
  const std::string data(64, 'x');
  const auto with = [&](const std::string& value) { return make_gguf({value}, {}, ""); };
  const auto holds = [&](const std::string& tensor, const std::string& bytes) {
    return make_gguf({}, {tensor}, bytes);
  };
  const std::string good = gguf_tensor("a", {4}, 0, 0);
  std::string big_endian = make_gguf({}, {}, "", 32, 0x03000000);
  return {
      {"too-short", "GGUF"},
      {"too-short", make_gguf({}, {good}, data).substr(0, 56)},
      {"gguf-version", big_endian},
      {"gguf-version", make_gguf({}, {}, "", 32, 1)},
      {"gguf-version", make_gguf({}, {}, "", 32, 4)},
      {"gguf-version", make_gguf({}, {}, "", 32, 0)},
      {"gguf-count", "GGUF" + u32(3) + u64(kHuge) + u64(0) + data},
      {"gguf-count", "GGUF" + u32(3) + u64(0) + u64(6) + data},
      {"gguf-key", with(gguf_value("", 0, "x"))},
      {"gguf-key", with(gguf_value("\xC3\xA9", 0, "x"))},
      {"gguf-key", with(gguf_value(std::string(65536, 'k'), 0, "x"))},
      {"gguf-string", "GGUF" + u32(3) + u64(0) + u64(1) + u64(kHuge) + data},
      {"gguf-string", with(gguf_value("k", 8, u64(40)))},
      {"gguf-string", with(gguf_array("k", 8, 1, u64(40) + u64(0)))},
      {"gguf-string", "GGUF" + u32(3) + u64(1) + u64(0) + u64(~std::uint64_t{0}) + data},
      {"duplicate-key", make_gguf({gguf_value("k", 0, "x"), gguf_value("k", 1, "x")}, {}, "")},
      {"gguf-value-type", with(gguf_value("k", 13, u64(0)))},
      {"gguf-value-type", with(gguf_array("k", 9, 1, u32(0) + u64(0)))},
      {"gguf-value-type", with(gguf_array("k", 13, 0, u64(0)))},
      {"gguf-array", with(gguf_array("k", 10, kHuge, ""))},
      {"gguf-array", with(gguf_array("k", 8, 100, std::string(32, '\0')))},
      {"gguf-array", with(gguf_array("k", 0, ~std::uint64_t{0}, ""))},
      {"gguf-bool", with(gguf_value("k", 7, "\2"))},
      {"gguf-bool", with(gguf_array("k", 7, 2, std::string("\1\xFF", 2)))},
      {"not-utf8", with(gguf_value("k", 8, gguf_text("\xFF")))},
      {"not-utf8", holds(gguf_tensor("\xFF", {4}, 0, 0), data)},
      {"gguf-alignment", with(gguf_value("general.alignment", 4, u32(0)))},
      {"gguf-alignment", with(gguf_value("general.alignment", 4, u32(6)))},
      {"gguf-alignment", with(gguf_value("general.alignment", 4, u32(24)))},
      {"gguf-alignment", with(gguf_value("general.alignment", 4, u32(1U << 21)))},
      {"gguf-alignment", with(gguf_value("general.alignment", 10, u64(32)))},
      {"gguf-alignment", with(gguf_value("general.alignment", 8, gguf_text("32")))},
      {"gguf-tokenizer", with(gguf_value("tokenizer.ggml.tokens", 8, gguf_text("a")))},
      {"gguf-tokenizer", with(gguf_array("tokenizer.ggml.scores", 1, 2, "ab"))},
      {"gguf-tokenizer", with(gguf_array("tokenizer.ggml.token_type", 4, 1, u32(1)))},
      {"gguf-tokenizer", make_gguf({gguf_array("tokenizer.ggml.tokens", 8, 1, gguf_text("a")),
                                    gguf_array("tokenizer.ggml.token_type", 5, 2, u32(1) + u32(1))},
                                   {}, "")},
      {"duplicate-tensor", make_gguf({}, {good, gguf_tensor("a", {4}, 0, 32)}, data)},
      {"limit-rank", holds(gguf_tensor("a", {1, 1, 1, 1, 1}, 0, 0), data)},
      {"limit-rank", holds(gguf_text("a") + u32(~0U) + data, data)},
      {"bad-number", holds(gguf_tensor("a", {std::uint64_t{1} << 63}, 0, 0), data)},
      {"gguf-type", holds(gguf_tensor("a", {32}, 4, 0), data)},
      {"gguf-type", holds(gguf_tensor("a", {32}, 9, 0), data)},
      {"gguf-type", holds(gguf_tensor("a", {32}, 36, 0), data)},
      {"gguf-type", holds(gguf_tensor("a", {32}, 1000, 0), data)},
      {"shape-overflow", holds(gguf_tensor("a", {kHuge, 4}, 0, 0), data)},
      {"shape-overflow", holds(gguf_tensor("a", {kHuge, 2}, 24, 0), data)},
      {"shape-overflow", holds(gguf_tensor("a", {kHuge}, 27, 0), data)},
      {"shape-overflow", holds(gguf_tensor("a", {0, kHuge, 4}, 0, 0), data)},
      {"partial-block", holds(gguf_tensor("a", {16, 2}, 8, 0), data)},
      {"partial-block", holds(gguf_tensor("a", {}, 8, 0), data)},
      {"gguf-offset", holds(gguf_tensor("a", {4}, 0, 8), data)},
      {"gguf-beyond", holds(gguf_tensor("a", {17}, 0, 0), data)},
      {"gguf-beyond", holds(gguf_tensor("a", {1}, 0, 64), data)},
      {"gguf-beyond", holds(gguf_tensor("a", {1}, 0, ~std::uint64_t{31}), data)},
      {"gguf-beyond", holds(gguf_tensor("a", {0}, 0, 96), data)},
      {"overlap", make_gguf({}, {gguf_tensor("a", {9}, 0, 0), gguf_tensor("b", {1}, 0, 32)}, data)},
      {"overlap", make_gguf({}, {gguf_tensor("a", {1}, 0, 0), gguf_tensor("b", {1}, 0, 0)}, data)},
  };
}

/// Rules about amounts, with small amounts.
struct LimitCase {
  const char* rule;
  GgufLimits good;
  GgufLimits bad;
};

const LimitCase kLimitCases[] = {
    {"limit-tensors", {.tensors = 1}, {.tensors = 0}},
    {"limit-name", {.name_bytes = 2}, {.name_bytes = 1}},
    {"limit-metadata", {.metadata = 2}, {.metadata = 1}},
    // Keys of one byte; values of 4 + 8 + 2 and 16 + 5 bytes.
    {"limit-metadata", {.metadata_bytes = 37}, {.metadata_bytes = 20}},
    {"limit-metadata", {.metadata_bytes = 37}, {.metadata_bytes = 14}},
    {"limit-metadata", {.metadata_bytes = 37}, {.metadata_bytes = 1}},
};

TEST_CASE("every bad file is refused by its rule, and by the naive reading") {
  const TempFolder folder;
  for (const BadCase& bad : bad_cases()) {
    CAPTURE(bad.rule);
    const auto parsed = parse_gguf_text(bad.file);
    const auto* violation = std::get_if<Violation>(&parsed);
    REQUIRE(violation != nullptr);
    CHECK(violation->rule == bad.rule);
    CHECK_FALSE(violation->message.empty());
    CHECK(violation->offset <= bad.file.size());
    CHECK_THROWS(NaiveGguf(bad.file));
    write_file(folder / "bad", bad.file);
    CHECK(contains(message_of([&] { open_checkpoint(folder / "bad"); }), bad.rule));
  }
}

TEST_CASE("every limit of GGUF is kept") {
  const std::string file =
      make_gguf({gguf_value("k", 8, gguf_text("ab")), gguf_array("l", 0, 5, "abcde")},
                {gguf_tensor("ab", {4}, 0, 0)}, std::string(16, 'x'));
  for (const LimitCase& row : kLimitCases) {
    CAPTURE(row.rule);
    CHECK(std::holds_alternative<FileContent>(parse_gguf_text(file, row.good)));
    const auto refused = parse_gguf_text(file, row.bad);
    REQUIRE(std::holds_alternative<Violation>(refused));
    CHECK(std::get<Violation>(refused).rule == row.rule);
  }
}

TEST_CASE("every rule of GGUF's sources has a test") {
  std::set<std::string> tested;
  for (const BadCase& bad : bad_cases()) tested.insert(bad.rule);
  for (const LimitCase& row : kLimitCases) tested.insert(row.rule);
  std::set<std::string> written;
  for (const char* file : {"gguf.cpp", "gguf_metadata.cpp"})
    written.merge(rules_in(read_file(std::string(MASQUE_SOURCES "/store/gguf/") + file)));
  written.erase("unsupported-format");  // another kind of file never gets there
  tested.erase("limit-tensors");        // handed to check_count
  CHECK(written.size() >= 19);
  CHECK(written == tested);
}

/// A small file with most things in it.
std::string small_file() {
  return make_gguf({gguf_value("general.alignment", 4, u32(16)), gguf_value("t", 8, gguf_text("é")),
                    gguf_array("tokenizer.ggml.tokens", 8, 2, gguf_text("a") + gguf_text("b")),
                    gguf_array("tokenizer.ggml.token_type", 5, 2, u32(1) + u32(3)),
                    gguf_value("b", 7, "\1"), gguf_array("n", 10, 1, u64(7))},
                   {gguf_tensor("a", {2, 3}, 1, 0), gguf_tensor("q", {32}, 8, 16),
                    gguf_tensor("z", {0, 3}, 24, 64), gguf_tensor("s", {}, 0, 64)},
                   std::string(68, 'x'), 16);
}

TEST_CASE("a GGUF file cut anywhere is refused") {
  const std::string file = small_file();
  REQUIRE(wrong_gguf(file) == "");
  REQUIRE(std::holds_alternative<FileContent>(parse_gguf_text(file)));
  for (std::size_t size = 0; size < file.size(); ++size) {
    CAPTURE(size);
    REQUIRE(std::holds_alternative<Violation>(parse_gguf_text(file.substr(0, size))));
    REQUIRE(wrong_gguf(file.substr(0, size)) == "");
  }
}

TEST_CASE("any byte of a GGUF header changed is refused or gives a header that is right") {
  const std::string file = small_file();
  std::size_t accepted = 0;
  for (std::size_t byte = 0; byte < file.size() - 68; ++byte) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[byte] = static_cast<char>(value);
      const std::string wrong = wrong_gguf(changed);
      if (!wrong.empty()) FAIL_CHECK("byte ", byte, " set to ", value, ": ", wrong);
      accepted += std::holds_alternative<FileContent>(parse_gguf_text(changed)) ? 1U : 0U;
    }
  }
  CHECK(accepted > 1000);  // letters of keys, texts and names, numbers, padding
}

TEST_CASE("hostile numbers anywhere in a GGUF header are refused or right") {
  const std::string file = small_file();
  for (std::size_t byte = 4; byte + 8 <= file.size() - 68; ++byte) {
    for (const std::uint64_t number :
         {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 31) - 1, std::uint64_t{1} << 31,
          std::uint64_t{1} << 32, std::uint64_t{1} << 53, (std::uint64_t{1} << 63) - 1,
          std::uint64_t{1} << 63, ~std::uint64_t{0} - 15, ~std::uint64_t{0}}) {
      std::string changed = file;
      changed.replace(byte, 8, u64(number));
      const std::string wrong = wrong_gguf(changed);
      if (!wrong.empty()) FAIL_CHECK("byte ", byte, " set to ", number, ": ", wrong);
    }
  }
}

}  // namespace
}  // namespace masque::store
