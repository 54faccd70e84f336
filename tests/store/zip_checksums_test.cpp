#include <cstring>

#include <doctest/doctest.h>

#include "store/zip/zip.hpp"
#include "store/zip/zip_stream.hpp"
#include "support/make_zip.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::make_zip;
using test::message_of;
using test::naive_crc32;
using test::number;
using test::read_file;
using test::TempFolder;
using test::write_file;
using test::ZipFile;
using test::ZipPart;

/// The file with bytes replaced, and what follows from that.
std::string changed(const std::string& path, std::size_t at, const std::string& bytes,
                    const ZipRules& rules = {}) {
  const InputFile file = InputFile::open(path);
  std::string text = read_file(path);
  text.replace(at, bytes.size(), bytes);
  const std::string now = text;
  const PatchedFile patched{
      &file, {{at, bytes.size()}}, [&](std::uint64_t offset, MutableBytes out) {
        std::memcpy(out.data(), now.data() + offset, out.size());
      }};
  for (const Patch& patch : zip_checksums(patched, rules))
    text.replace(patch.offset, patch.bytes.size(), patch.bytes);
  return text;
}

TEST_CASE("a member changed in place has its new CRC wherever it stands") {
  const TempFolder folder;
  const std::string old = "hello, world";
  const std::string crc = number(naive_crc32(old), 4);
  const std::string size = number(old.size(), 4);
  const ZipPart plain{.name = "plain", .data = old};
  const ZipPart later{.name = "later",
                      .data = old,
                      .flags = 8,
                      .descriptor = crc + size + size,
                      .empty_local = true};
  const ZipPart both{
      .name = "both", .data = old, .flags = 8, .descriptor = "PK\x07\x08" + crc + size + size};
  for (const ZipPart& part : {plain, later, both}) {
    CAPTURE(part.name);
    const ZipFile zip = make_zip({{.name = "first", .data = "12345"}, part, {.name = "last"}});
    write_file(folder / "f", zip.text);
    const std::string text = changed(folder / "f", zip.text.find(old) + 7, "WORLD");
    write_file(folder / "f", text);
    CHECK(text.size() == zip.text.size());
    const InputFile file = InputFile::open(folder / "f");
    const auto members = value_or_throw(read_zip_directory(file));
    REQUIRE(members.size() == 3);
    for (const ZipMember& member : members) {
      ZipStream stream(file, member);
      CHECK_FALSE(stream.finish());
    }
    CHECK(members[1].crc == naive_crc32("hello, WORLD"));
    CHECK(members[0].crc == naive_crc32("12345"));
    // A descriptor that was not renewed would break a rule.
    CHECK(text.find(crc) == std::string::npos);
  }
}

TEST_CASE("a packed member is not changed in place") {
  const TempFolder folder;
  const ZipFile zip = make_zip({{.name = "a", .data = "packed", .method = 8, .bytes = 9}});
  write_file(folder / "f", zip.text);
  CHECK(contains(
      message_of([&] { changed(folder / "f", zip.text.find("packed"), "P", {.deflate = true}); }),
      "member 'a' is packed: not in place"));
}

}  // namespace
}  // namespace masque::store
