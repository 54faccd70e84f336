// A mapped file holds the bytes of the file, also after it is closed and gone.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {
namespace {

TEST_CASE("the bytes stay when the file is closed and removed") {
  const TempFolder folder;
  std::string text(10000, 'x');
  text[9999] = 'y';
  write_file(folder / "file", text);
  std::shared_ptr<const MappedFile> mapped;
  {
    const InputFile file = InputFile::open(folder / "file");
    mapped = MappedFile::map(file);
  }
  std::filesystem::remove(folder / "file");
  const Bytes bytes = mapped->bytes();
  REQUIRE(bytes.size() == text.size());
  CHECK(std::ranges::equal(bytes, as_bytes(text)));
}

TEST_CASE("an empty file maps to nothing, a file that has shrunk to an error") {
  const TempFolder folder;
  write_file(folder / "empty", "");
  CHECK(MappedFile::map(InputFile::open(folder / "empty"))->bytes().empty());
  write_file(folder / "file", "12345678");
  const InputFile file = InputFile::open(folder / "file");
  REQUIRE(::truncate((folder / "file").c_str(), 5) == 0);
  CHECK(contains(message_of([&] { MappedFile::map(file); }),
                 "ends at byte 5, was 8 bytes when opened"));
}

}  // namespace
}  // namespace masque::test
