// Fields and lines of CSV, against the rules of RFC 4180 and what a terminal may see.
#include "cli/table.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace masque::cli {
namespace {

using namespace std::string_view_literals;

std::string text(std::string_view value) { return csv_text(value, false); }

}  // namespace

TEST_CASE("text is quoted, and only quotes change") {
  CHECK(text("") == "\"\"");
  CHECK(text("NA") == "\"NA\"");
  CHECK(text("007") == "\"007\"");
  CHECK(text("a,b") == "\"a,b\"");
  CHECK(text("\"") == "\"\"\"\"");
  CHECK(text("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(text("a\tb\nc") == "\"a\tb\nc\"");
  CHECK(text("back\\slash\\n") == "\"back\\slash\\n\"");
  CHECK(text("größe 埋め込み 🙂") == "\"größe 埋め込み 🙂\"");
  CHECK(text("\u200Fעברית") == "\"\u200Fעברית\"");
}

TEST_CASE("nothing that a terminal obeys is in a field") {
  CHECK(text("\x1b[31m") == "\"\\x1b[31m\"");
  CHECK(text("a\rb") == "\"a\\x0db\"");
  CHECK(text("\0x"sv) == "\"\\x00x\"");
  CHECK(text("\x7f") == "\"\\x7f\"");
  CHECK(text("\xC2\x9B") == "\"\\u{9b}\"");
  CHECK(text("a\xFF\"") == "\"a\\xff\"\"\"");
  CHECK(text("a\u202Eb\u2066c\u2069") == "\"a\\u{202e}b\\u{2066}c\\u{2069}\"");
  CHECK(csv_name("p(\u202E)", false) == "\"p(\\u{202e})\"");
  CHECK(csv_text("a\u202Eb\u2028\uFEFF", true) == "\"a\\u{202e}b\\u{2028}\\u{feff}\"");
  CHECK(csv_text("a\tb\n\\é", true) == "\"a\tb\n\\é\"");
}

TEST_CASE("names of columns are quoted where they must be") {
  CHECK(csv_name("log_probability", false) == "log_probability");
  CHECK(csv_name("p(great)", false) == "p(great)");
  CHECK(csv_name("p(a,b)", false) == "\"p(a,b)\"");
  CHECK(csv_name("p(\"x\")", false) == "\"p(\"\"x\"\")\"");
  CHECK(csv_name("a b", false) == "\"a b\"");
  CHECK(csv_name("", false) == "\"\"");
  CHECK(csv_name("\x1b", false) == "\"\\x1b\"");
}

TEST_CASE("numbers have no quotes, and readers know those that are not finite") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  CHECK(Cell(-1.5).csv(false) == "-1.5");
  CHECK(Cell(3e-05).csv(false) == "3e-05");
  CHECK(Cell(7).csv(false) == "7");
  CHECK(Cell(true).csv(false) == "true");
  CHECK(Cell(kNaN).csv(false) == "NaN");
  CHECK(Cell(-kNaN).csv(false) == "NaN");
  CHECK(Cell(kInfinity).csv(false) == "Inf");
  CHECK(Cell(-kInfinity).csv(false) == "-Inf");
  CHECK(Cell::rounded(kNaN).csv(false) == "NaN");
  CHECK(Cell::rounded(0.25).csv(false) == "0.2500");
  CHECK(Cell("7").csv(false) == "\"7\"");
  CHECK(Cell("nan").csv(false) == "\"nan\"");
}

TEST_CASE("keys of JSON are escaped as its texts are") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  std::fflush(stdout);
  const int own = ::dup(STDOUT_FILENO);
  REQUIRE(::dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
  {
    Session session("test", false);
    CommonOptions options;
    options.json = true;
    Table table(session, options, {"k\xFF", "\u202Eé\""});
    table.row({1, "v\xFF"});
    table.finish();
    session.flush_quietly();
  }
  ::dup2(own, STDOUT_FILENO);
  std::array<char, 100> text{};
  const ssize_t size = ::read(ends[0], text.data(), text.size());
  for (const int fd : {own, ends[0], ends[1]}) ::close(fd);
  REQUIRE(size > 0);
  CHECK(std::string(text.data(), static_cast<std::size_t>(size)) ==
        "{\"k\\\\xff\":1,\"\\u202eé\\\"\":\"v\\\\xff\"}\n");
}

TEST_CASE("no value, lists and other JSON") {
  CHECK(Cell::none().text() == "-");
  CHECK(Cell::none().json() == "null");
  CHECK(Cell::none().csv(false).empty());
  CHECK(Cell("-").csv(false) == "\"-\"");
  CHECK(Cell::raw("[2,3]", "[2,3]").csv(false) == "\"[2,3]\"");
  CHECK(Cell::raw("-", "[]").csv(false).empty());
  CHECK(Cell::raw("a\\\\b", "\"a\\\\b\"", "a\\b").csv(false) == "\"a\\b\"");
  const Cell list = list_cell(std::vector<std::string>{"a\tb", "c\"d"});
  CHECK(list.text() == "a\\tb c\"d");
  CHECK(list.csv(false) == "\"a\tb c\"\"d\"");
  CHECK(list_cell(std::vector<Cell>{1, 2.5}).csv(false) == "\"1 2.5\"");
}

}  // namespace masque::cli
