// Files of other kinds are recognised by their first bytes; texts that begin like them are not.
#include "base/file/file_kind.hpp"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/line_filter.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kPng = "\x89PNG\r\n\x1A\n\0\0\0\rIHDR"sv;

TEST_CASE("a picture, an archive and a document are no text") {
  CHECK(known_kind(kPng) == "a PNG picture");
  CHECK_THROWS_WITH_AS(refuse_other_kind(kPng, "pic.png"),
                       "pic.png: a PNG picture, expected a text", InputError);
  CHECK_THROWS_WITH_AS(refuse_other_kind("x\x9C\x4B\x4C\x04\0\0\x62"sv, "t.z"),
                       "t.z: compressed by zlib: unpack it first, expected a text", InputError);
  CHECK_NOTHROW(refuse_other_kind("x^2 + y^2 = z^2\n"sv, "t"));
  CHECK_THROWS_WITH_AS(refuse_other_kind("\x1F\x8B\x08\0"sv, "t.gz"),
                       "t.gz: compressed by gzip: unpack it first, expected a text", InputError);
  CHECK_THROWS_WITH_AS(refuse_other_kind("%PDF-1.4\n%\xE2\xE3\xCF\xD3\n"sv, "a.pdf"),
                       "a.pdf: a PDF document, expected a text", InputError);
}

TEST_CASE("a text may begin with the letters of another kind") {
  for (const std::string_view text :
       {""sv, "the cat\n"sv, "<html>\n"sv, "BZh is a name\n"sv, "GIF89a, a format \xC3\xA4"sv,
        "%PDF-1.4 begins a document\n"sv, "\xFF\xFE not UTF-8\n"sv}) {
    CHECK_NOTHROW(refuse_other_kind(text, "text"));
  }
}

TEST_CASE("text is read from no picture") {
  test::TempFolder folder;
  const std::string path = folder / "pic.png";
  test::write_file(path, kPng);
  CHECK_THROWS_WITH_AS(read_text(path, 1000), doctest::Contains("a PNG picture"), InputError);
  LineFilter filter;
  filter.work = [](const LinePiece&, std::string&) {};
  filter.sink = [](std::string_view) {};
  CHECK_THROWS_WITH_AS(filter_lines(path, filter), doctest::Contains("a PNG picture"), InputError);
}

}  // namespace
}  // namespace masque
