// Numbers that are a text, or begin one.
#include "base/string/parse_number.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

namespace masque {
namespace {

TEST_CASE("a number is the whole text or none") {
  CHECK(parse_number<int>("-12") == -12);
  CHECK(parse_number<double>("1e-3") == 1e-3);
  CHECK(!parse_number<int>(""));
  CHECK(!parse_number<int>("12x"));
  CHECK(!parse_number<int>(" 1"));
  CHECK(!parse_number<int>("+1"));
  CHECK(!parse_number<int>("99999999999"));
  CHECK(!parse_number<unsigned>("-1"));
  CHECK(!parse_number<double>("1,5"));
}

TEST_CASE("both ends of a type are numbers, and one beyond is none") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  CHECK(parse_number<std::uint64_t>(std::to_string(kMost)) == kMost);
  CHECK(!parse_number<std::uint64_t>("18446744073709551616"));
  CHECK(parse_number<std::int64_t>("-9223372036854775808") ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(!parse_number<double>("1e999"));
  CHECK(parse_number<double>("inf") == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(parse_number<double>("nan").value()));
}

TEST_CASE("a number is taken from the begin of a text, which is else left as it is") {
  std::string_view text = "12 rest";
  CHECK(take_number<int>(text) == 12);
  CHECK(text == " rest");
  CHECK(!take_number<int>(text));
  CHECK(text == " rest");
}

}  // namespace
}  // namespace masque
