// A good file damaged in every small way: refused, or right by the naive validator too.
#include <unistd.h>

#include <cctype>
#include <cstring>

#include <doctest/doctest.h>

#include "store/checkpoint.hpp"
#include "support/safetensors_oracle.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::parse_whole;
using test::wrong_verdict;

std::string with_length(const std::string& json, std::uint64_t length, std::size_t data) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + std::string(data, '\x5A');
}

std::string with_header(const std::string& json, std::size_t data) {
  return with_length(json, json.size(), data);
}

const std::string kJson = R"({"__metadata__":{"format":"pt","a\u00e9":""},)"
                          R"("bert.w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                          R"("b\n":{"dtype":"BF16","shape":[],"data_offsets":[24,26]},)"
                          R"("none":{"dtype":"U8","shape":[0,7],"data_offsets":[26,26]},)"
                          R"("f4":{"dtype":"F4","shape":[4],"data_offsets":[26,28]}}   )";
constexpr std::size_t kData = 28;

bool accepted(std::string_view file) {
  return std::holds_alternative<SafetensorsHeader>(parse_whole(file));
}

TEST_CASE("the file that the following tests damage is good") {
  const std::string file = with_header(kJson, kData);
  CHECK(file.size() > 280);
  CHECK(accepted(file));
  CHECK(wrong_verdict(file) == "");
}

TEST_CASE("a file cut anywhere is refused") {
  const std::string file = with_header(kJson, kData);
  const test::TempFolder folder;
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    CAPTURE(size);
    REQUIRE_FALSE(accepted(cut));
    REQUIRE(wrong_verdict(cut) == "");
    test::write_file(folder / "cut", cut);
    REQUIRE(std::holds_alternative<Violation>(open_checked(folder / "cut")));
  }
}

TEST_CASE("a byte too many is refused") {
  const std::string file = with_header(kJson, kData);
  for (const char extra : {'\0', ' ', 'x'}) {
    CHECK(std::get<Violation>(parse_whole(file + extra)).rule == "file-size");
  }
}

TEST_CASE("any bit of the header flipped is refused or gives a header that is right") {
  const std::string file = with_header(kJson, kData);
  int right = 0;
  for (std::size_t byte = 0; byte < file.size() - kData; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = file;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      const std::string wrong = wrong_verdict(flipped);
      if (!wrong.empty()) FAIL_CHECK("byte ", byte, " bit ", bit, ": ", wrong);
      right += accepted(flipped) ? 1 : 0;
    }
  }
  CHECK(right > 20);  // letters of names and of metadata
}

TEST_CASE("any byte of the header changed is refused or gives a header that is right") {
  const std::string file = with_header(kJson, kData);
  for (std::size_t byte = 0; byte < file.size() - kData; ++byte) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[byte] = static_cast<char>(value);
      const std::string wrong = wrong_verdict(changed);
      if (!wrong.empty()) FAIL_CHECK("byte ", byte, " set to ", value, ": ", wrong);
    }
  }
}

/// What numbers near `value` and at the ends of the integer types look like.
std::vector<std::string> hostile_numbers(std::uint64_t value) {
  std::vector<std::string> numbers = {"0",
                                      "1",
                                      "-1",
                                      "2147483647",
                                      "2147483648",
                                      "4294967295",
                                      "4294967296",
                                      "9007199254740992",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "18446744073709551615",
                                      "18446744073709551616",
                                      "36893488147419103232",
                                      "1e1",
                                      "1.0",
                                      "-0",
                                      "00",
                                      "",
                                      "true"};
  numbers.push_back(std::to_string(value + 1));
  numbers.push_back(std::to_string(value - 1));
  numbers.push_back(std::to_string(value * 2));
  return numbers;
}

TEST_CASE("any number of the header replaced is refused or gives a header that is right") {
  int replaced = 0;
  for (std::size_t at = kJson.find("bert.w"); at < kJson.size(); ++at) {
    const auto is_digit = [&](std::size_t i) {
      return std::isdigit(static_cast<unsigned char>(kJson[i])) != 0;
    };
    if (!is_digit(at) || (kJson[at - 1] != '[' && kJson[at - 1] != ',')) continue;
    std::size_t end = at;
    while (is_digit(end)) ++end;
    ++replaced;
    const std::uint64_t value = std::stoull(kJson.substr(at, end - at));
    for (const std::string& number : hostile_numbers(value)) {
      const std::string json = kJson.substr(0, at) + number + kJson.substr(end);
      const std::string file = with_header(json, kData);
      const std::string wrong = wrong_verdict(file);
      if (!wrong.empty()) FAIL_CHECK("byte ", at, " set to ", number, ": ", wrong);
      if (number == std::to_string(value)) continue;
      // A dimension next to a zero dimension may have any size; every other number counts.
      if (accepted(file)) CHECK(kJson.substr(at - 2, 4) == "0,7]");
    }
  }
  CHECK(replaced == 13);
}

TEST_CASE("any other length of the header is refused or gives a header that is right") {
  const std::uint64_t truth = kJson.size();
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{1}, truth - 1, truth + 1, truth + kData, truth + kData + 1,
        std::uint64_t{1} << 31, std::uint64_t{1} << 32, std::uint64_t{1} << 53,
        (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63, ~std::uint64_t{0} - 7,
        ~std::uint64_t{0}}) {
    const std::string file = with_length(kJson, length, kData);
    CAPTURE(length);
    CHECK(wrong_verdict(file) == "");
    CHECK_FALSE(accepted(file));
  }
}

TEST_CASE("a huge sparse file with a small header is refused at once") {
  // Its data would be a tebibyte; only the header is looked at.
  const test::TempFolder folder;
  test::write_file(folder / "f", with_header(kJson, kData));
  REQUIRE(::truncate((folder / "f").c_str(), off_t{1} << 40) == 0);
  const auto opened = open_checked(folder / "f");
  REQUIRE(std::holds_alternative<Violation>(opened));
  CHECK(std::get<Violation>(opened).rule == "file-size");
}

}  // namespace
}  // namespace masque::store
