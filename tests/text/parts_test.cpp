// Normalizers and pre-tokenizers against Hugging Face's tokenizers: every character, every offset.
#include <span>

#include <doctest/doctest.h>

#include "base/digest/hash.hpp"
#include "text/part_results.hpp"
#include "text/step/bert.hpp"

namespace masque::text {
namespace {

TEST_CASE("parts give the characters and offsets of the reference") {
  for (const auto& row : test::read_table(MASQUE_TEST_DATA "/text/parts.tsv", 5)) {
    if (row[3] == "all") continue;
    CAPTURE(row[0]);
    CAPTURE(row[3]);
    const Parts parts(row[1], row[2]);
    const auto hash = make_xxh3();
    std::vector<std::uint32_t> result;
    for_each_string(row[3], [&](std::string_view text) {
      result.clear();
      parts.result(text, result);
      hash->add(std::as_bytes(std::span(result)));
    });
    CHECK(hash->digest() == row[4]);
  }
}

TEST_CASE("parts agree with the reference on every code point") {
  for (const auto& row : test::read_table(MASQUE_TEST_DATA "/text/parts.tsv", 5)) {
    if (row[3] != "all") continue;
    CAPTURE(row[0]);
    const Parts parts(row[1], row[2]);
    const auto hash = make_xxh3();
    std::vector<std::uint32_t> result;
    for_each_string(row[3], [&](std::string_view text) {
      result.clear();
      parts.result(text, result);
      hash->add(std::as_bytes(std::span(result)));
    });
    CHECK(hash->digest() == row[4]);
  }
}

}  // namespace
}  // namespace masque::text
