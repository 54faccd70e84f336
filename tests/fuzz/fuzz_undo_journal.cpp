// Any bytes as the journal of a change in place of two files, its length and sum right, the inode
// that of the first file, and a digest of zeros that of the second: the change is taken back, or
// refused and no file is touched.
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/digest/hash.hpp"
#include "base/file/file.hpp"
#include "base/file/in_place.hpp"
#include "base/little_endian.hpp"
#include "fuzz/fuzz.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

const std::string kFirst(100, 'a');
const std::string kSecond(50, 'b');
constexpr std::size_t kFirstInode = 16 + 4 + 1;  // prefix, number of files, kind of the first one

/// The journal with the inode of the file that it lies next to, and its trailer.
std::string journal_of(std::string_view body, const std::string& file) {
  std::string text(body);
  struct stat info = {};
  test::require(::stat(file.c_str(), &info) == 0, "no file");
  std::string inode;
  append_number(inode, static_cast<std::uint64_t>(info.st_ino));
  if (text.size() >= kFirstInode + 8) text.replace(kFirstInode, 8, inode);
  const std::string zeros(32, '0');
  for (std::size_t at = 0; (at = text.find(zeros, at)) != std::string::npos; at += zeros.size())
    text.replace(at, zeros.size(), xxh3_of(as_bytes(kSecond)));
  append_number(text, static_cast<std::uint64_t>(text.size() + 48));
  const std::string sum = xxh3_of(as_bytes(text));
  return text + sum + "undo-end";
}

void check(std::string_view body) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  for (const std::string& name : folder.names())
    test::require(::unlink((folder / name).c_str()) == 0, "a folder appeared");
  test::write_file(folder / "a", kFirst);
  test::write_file(folder / "b", kSecond);
  test::write_file(folder / ".a.undo", journal_of(body, folder / "a"));
  bool recovered = false;
  const bool good = test::accepts([&] {
    recovered = !LockedFiles(folder.path(), {"a", "b"}, 0).recovered().empty();
  });
  test::require(test::read_file(folder / "a").size() == kFirst.size(), "another size");
  const bool there = exists(folder / ".a.undo");
  test::require(good != there || (good && !recovered), "a journal that is neither done nor there");
  if (!good || there) {
    test::require(test::read_file(folder / "a") == kFirst, "touched after all");
    test::require(test::read_file(folder / "b") == kSecond, "touched after all");
  }
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
