// Zip directories: the forms that Python and PyTorch write are read, and every rule has bad files.
#include "store/zip/zip.hpp"

#include <unistd.h>

#include <functional>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "store/zip/zip_stream.hpp"
#include "support/make_zip.hpp"
#include "support/memory_file.hpp"
#include "support/rules.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::make_zip;
using test::number;
using test::with_zip64;
using test::ZipFile;
using test::ZipPart;

using Members = std::vector<ZipMember>;

Checked<Members> read(std::string_view file, const ZipRules& rules = {}) {
  return read_zip_directory(test::MemoryFile(file).open(), rules);
}

/// The rule that the directory, else the content of the first member that breaks one, breaks.
std::string rule_of(std::string_view file, const ZipRules& rules = {}) {
  const InputFile input = test::MemoryFile(file).open();
  const auto checked = read_zip_directory(input, rules);
  if (const auto* violation = std::get_if<Violation>(&checked)) return violation->rule;
  for (const ZipMember& member : std::get<Members>(checked)) {
    if (const auto violation = ZipStream(input, member).finish()) return violation->rule;
  }
  return "";
}

constexpr ZipRules kDeflate{.deflate = true};
const std::string kHello("\xCB\x48\xCD\xC9\xC9\x07\x00", 7);  // "hello", deflated

ZipPart deflated(const std::string& packed = kHello) {
  return {.data = packed, .method = 8, .bytes = 5, .crc = test::naive_crc32("hello")};
}

ZipFile two() { return make_zip({{}, {.name = "b.npy", .data = "world!"}}); }

TEST_CASE("members are listed in the directory's order, with their places") {
  const ZipFile zip = two();
  const Members members = std::get<Members>(read(zip.text));
  REQUIRE(members.size() == 2);
  CHECK(members[0].name == "a.npy");
  CHECK(members[1].name == "b.npy");
  CHECK(members[1].bytes == 6);
  CHECK(members[1].packed_bytes == 6);
  CHECK(members[1].header_begin == zip.local[1]);
  CHECK(zip.text.substr(members[1].data_begin, 6) == "world!");
  CHECK(members[1].end == zip.directory);
  CHECK(rule_of(zip.text) == "");
  CHECK(std::get<Members>(read(make_zip({}).text)).empty());
}

TEST_CASE("the forms that writers use are read") {
  // PyTorch: sizes and CRC after the data, padding in an extra field, always the ZIP64 records.
  const ZipPart torch{.name = "archive/data/0",
                      .flags = 0x0808,
                      .local_extra = "FB" + number(6, 2) + "ZZZZZZ",
                      .descriptor = "PK\x07\x08" + number(test::naive_crc32("hello"), 4) +
                                    number(5, 4) + number(5, 4),
                      .empty_local = true};
  ZipPart wide = torch;
  wide.name = "archive/data/1";
  wide.descriptor =
      "PK\x07\x08" + number(test::naive_crc32("hello"), 4) + number(5, 8) + number(5, 8);
  ZipPart bare = torch;
  bare.name = "archive/data/2";
  bare.descriptor = torch.descriptor.substr(4);
  const ZipPart none{.name = "archive/none", .data = "", .flags = 0x0800};
  CHECK(rule_of(with_zip64(make_zip({torch, wide, bare, none}), 4)) == "");
  // NumPy: sizes in a ZIP64 field of the local header.
  ZipFile python =
      make_zip({{.local_extra = number(1, 2) + number(16, 2) + number(5, 8) + number(5, 8)}});
  CHECK(rule_of(python.with(18, ~0ULL, 8)) == "");
  // Saturated fields of the directory, in the order of the format.
  ZipFile full = make_zip(
      {{.extra = number(1, 2) + number(24, 2) + number(5, 8) + number(5, 8) + number(0, 8)}});
  std::string text = full.with(full.entry[0] + 20, ~0ULL, 8);
  text.replace(full.entry[0] + 42, 4, number(~0ULL, 4));
  CHECK(rule_of(text) == "");
  CHECK(rule_of(make_zip({deflated()}).text, kDeflate) == "");
  // A comment after the end record, which may look like another one's beginning.
  ZipFile comment = two();
  comment.text = comment.with(comment.end + 20, 3, 2) + "abc";
  CHECK(rule_of(comment.text) == "");
  // A name beyond ASCII with its flag; a gap between members.
  CHECK(rule_of(make_zip({{.name = "größe.npy", .flags = 0x0800}}).text) == "");
  CHECK(rule_of(make_zip({{.descriptor = "gap"}, {.name = "b"}}).text) == "");
}

struct BadCase {
  std::string rule;
  std::function<std::string()> file;
  ZipRules rules = {};
};

std::string named(const std::string& name, unsigned flags = 0) {
  return make_zip({{.name = name, .flags = flags}}).text;
}

std::string zip64_with(std::size_t back, std::uint64_t value, int width) {
  std::string text = with_zip64(two(), 2);
  return text.replace(text.size() - back, static_cast<std::size_t>(width), number(value, width));
}

// Distances from the end of the file: end record 22, locator 42, end record 64 98.
const BadCase kBadCases[] = {
    {"zip-end", [] { return std::string(); }},
    {"zip-end", [] { return two().text.substr(0, two().text.size() - 1); }},
    {"zip-end", [] { return two().text + "x"; }},
    {"zip-end", [] { return std::string(100, 'x'); }},
    {"zip-end", [] { return two().with(two().end + 20, 1, 2); }},
    {"zip-end",
     [] { return two().with(two().end + 20, 4, 2) + "PK\x05\x06" + std::string(18, 'x'); }},
    {"zip-zip64", [] { return zip64_with(42 - 4, 1, 4); }},
    {"zip-zip64", [] { return zip64_with(42 - 16, 2, 4); }},
    {"zip-zip64", [] { return zip64_with(42 - 8, 3, 8); }},
    {"zip-zip64", [] { return zip64_with(98, 0, 4); }},
    {"zip-zip64", [] { return zip64_with(98 - 4, 45, 8); }},
    {"zip-zip64", [] { return zip64_with(98 - 16, 1, 4); }},
    {"zip-zip64", [] { return zip64_with(98 - 24, 3, 8); }},
    {"zip-zip64", [] { return zip64_with(98 - 32, 3, 8); }},
    {"zip-zip64", [] { return zip64_with(98 - 40, ~0ULL, 8); }},
    {"zip-zip64", [] { return zip64_with(98 - 48, ~0ULL, 8); }},
    {"zip-zip64", [] { return zip64_with(22 - 10, 1, 2); }},
    {"zip-disks", [] { return two().with(two().end + 4, 1, 2); }},
    {"zip-disks", [] { return two().with(two().end + 6, 1, 2); }},
    {"zip-disks", [] { return two().with(two().end + 8, 1, 2); }},
    {"zip-disks", [] { return two().with(two().entry[1] + 34, 1, 2); }},
    {"zip-directory", [] { return two().with(two().end + 12, 1, 4); }},
    {"zip-directory", [] { return two().with(two().end + 16, 0xFFFF'FFFF, 4); }},
    {"zip-directory", [] { return two().with(two().end + 8, 0x0003'0003, 4); }},
    {"zip-directory", [] { return two().with(two().end + 8, 0x0001'0001, 4); }},
    {"zip-directory", [] { return two().with(two().entry[1], 0, 1); }},
    {"zip-directory", [] { return two().with(two().entry[1] + 32, 1, 2); }},
    {"zip-directory", [] { return two().with(two().entry[0] + 28, 0xFFFF, 2); }},
    {"zip-name", [] { return named(""); }},
    {"zip-name", [] { return named("/a"); }},
    {"zip-name", [] { return named("a/"); }},
    {"zip-name", [] { return named("a//b"); }},
    {"zip-name", [] { return named("a/../b"); }},
    {"zip-name", [] { return named(".."); }},
    {"zip-name", [] { return named("./a"); }},
    {"zip-name", [] { return named("a\\b"); }},
    {"zip-name", [] { return named(std::string("a\0b", 3)); }},
    {"zip-name", [] { return named("größe"); }},
    {"zip-name", [] { return named("a\xFF", 0x0800); }},
    {"zip-duplicate",
     [] {
       return make_zip({{}, {}}).text;
     }},
    {"zip-duplicate",
     [] {
       return make_zip({{}, {.name = "A.NPY"}}).text;
     }},
    {"zip-extra", [] { return make_zip({{.extra = "abc"}}).text; }},
    {"zip-extra", [] { return make_zip({{.local_extra = "ab" + number(5, 2) + "1234"}}).text; }},
    {"zip-extra", [] { return make_zip({{.extra = number(1, 4) + number(1, 4)}}).text; }},
    {"zip-extra", [] { return two().with(two().entry[0] + 24, ~0U, 4); }},
    {"zip-extra", [] { return two().with(two().local[0] + 18, ~0U, 4); }},
    {"zip-flags", [] { return named("a", 0x0001); }},
    {"zip-flags", [] { return named("a", 0x2000); }},
    {"zip-flags", [] { return two().with(two().entry[0] + 8, 0x0041, 2); }},
    {"zip-sizes", [] { return make_zip({{.bytes = 6}}).text; }},
    {"zip-method", [] { return make_zip({deflated()}).text; }},
    {"zip-method", [] { return make_zip({{.method = 12}}).text; }, kDeflate},
    {"zip-ratio", [] { return make_zip({{.data = kHello, .method = 8, .bytes = 7701}}).text; },
     kDeflate},
    {"zip-ratio", [] { return make_zip({{.data = "", .method = 8, .bytes = 1}}).text; }, kDeflate},
    {"zip-beyond", [] { return two().with(two().entry[1] + 42, two().directory - 29, 4); }},
    {"zip-beyond", [] { return two().with(two().entry[1] + 42, 0xFFFF'FFFE, 4); }},
    {"zip-beyond", [] { return two().with(two().local[1] + 28, 7, 2); }},
    {"zip-beyond",
     [] {
       ZipFile zip = two();
       zip.text = zip.with(zip.entry[1] + 20, 0x0000'0007'0000'0007, 8);
       return zip.with(zip.local[1] + 18, 0x0000'0007'0000'0007, 8);
     }},
    {"zip-local-header", [] { return two().with(two().local[1], 0, 1); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 30, 'c', 1); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 26, 4, 2); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 6, 1, 2); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 6, 8, 2); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 8, 8, 2); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 14, 1, 4); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 18, 5, 4); }},
    {"zip-local-header", [] { return two().with(two().local[1] + 22, 0, 4); }},
    {"zip-descriptor", [] { return make_zip({{.flags = 8}}).text; }},
    {"zip-descriptor",
     [] { return make_zip({{.flags = 8, .descriptor = "PK\x07\x08" + number(0, 12)}}).text; }},
    {"zip-leading-bytes",
     [] {
       ZipFile zip = make_zip({{.data = ""}, {.name = "b"}});
       zip.text = zip.text.substr(0, zip.directory) + zip.text.substr(zip.entry[1]);
       const std::size_t cut = zip.entry[1] - zip.directory;
       zip.text = zip.with(zip.end - cut + 8, 0x0001'0001, 4);
       return zip.with(zip.end - cut + 12, zip.end - zip.entry[1], 4);
     }},
    {"zip-leading-bytes",
     [] {
       ZipFile zip = make_zip({});
       zip.text = zip.with(16, 4, 4);
       return "#!/x" + zip.text;
     }},
    {"zip-overlap",
     [] {  // a local header inside the data of another member
       const ZipFile inner = make_zip({{.name = "b"}});
       ZipFile zip = make_zip({{.data = inner.text.substr(0, inner.directory)}, {.name = "b"}});
       return zip.with(zip.entry[1] + 42, 30 + 5, 4);
     }},
    {"zip-data", [] { return make_zip({deflated("\xFF\xFF")}).text; }, kDeflate},
    {"zip-data", [] { return make_zip({deflated(kHello.substr(0, 4))}).text; }, kDeflate},
    {"zip-data", [] { return make_zip({deflated(kHello + "x")}).text; }, kDeflate},
    {"zip-data", [] { return make_zip({{.data = kHello, .method = 8, .bytes = 4}}).text; },
     kDeflate},
    {"zip-data", [] { return make_zip({{.data = kHello, .method = 8, .bytes = 6}}).text; },
     kDeflate},
    {"zip-data", [] { return make_zip({{.data = "", .method = 8}}).text; }, kDeflate},
    {"zip-crc", [] { return make_zip({{.crc = 1}}).text; }},
    {"zip-crc", [] { return make_zip({{.data = kHello, .method = 8, .bytes = 5}}).text; },
     kDeflate},
    {"limit-members", [] { return two().text; }, {.members = 1}},
    {"limit-directory", [] { return two().text; }, {.directory_bytes = 2 * (46 + 5) - 1}},
};

TEST_CASE("every bad zip file is refused by its rule") {
  int number = 0;
  for (const BadCase& row : kBadCases) {
    const std::string file = row.file();
    CAPTURE(number++);
    CHECK(rule_of(file, row.rules) == row.rule);
    CHECK(rule_of(file, row.rules) != "");
  }
}

TEST_CASE("every limit of a zip file is kept to the last unit") {
  CHECK(rule_of(two().text, {.members = 2}) == "");
  CHECK(rule_of(two().text, {.directory_bytes = 2 * (46 + 5)}) == "");
  CHECK(rule_of(make_zip({{}, {.name = "A.npy"}}).text, {.ignore_case = false}) == "");
  CHECK(rule_of(make_zip({{}, {}}).text, {.ignore_case = false}) == "zip-duplicate");
}

TEST_CASE("every rule of the zip sources has a test") {
  std::set<std::string> tested;
  for (const BadCase& row : kBadCases) tested.insert(row.rule);
  std::set<std::string> written;
  for (const char* file : {"zip.cpp", "zip_stream.cpp"}) {
    written.merge(
        test::rules_in(test::read_file(std::string(MASQUE_SOURCES "/store/zip/") + file)));
  }
  CHECK(written.size() >= 20);
  CHECK(written == tested);
}

TEST_CASE("sizes and places beyond 4 GiB are written and read") {
  // Sparse: only the records are written.
  const test::TempFolder folder;
  const std::string path = folder / "large.zip";
  constexpr std::uint64_t kBytes = 5ULL << 30;
  std::vector<ZipEntry> entries = {{"a", 0, kBytes, 0}, {"b", 0, 0xFFFF'FFFF, 0}, {"c", 0, 3, 0}};
  std::string local;
  std::uint64_t at = 0;
  Descriptor out(::mkstemp((local = folder / "XXXXXX").data()));
  for (ZipEntry& entry : entries) {
    entry.header_begin = at;
    const std::string header = write_zip_local_header(entry);
    write_at(out.get(), at, as_bytes(header), path);
    at += header.size() + entry.bytes;
  }
  write_at(out.get(), at, as_bytes(write_zip_directory(entries, at)), path);
  const auto members = value_or_throw(
      read_zip_directory(InputFile::open("/proc/self/fd/" + std::to_string(out.get()))));
  REQUIRE(members.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(members[i].name == entries[i].name);
    CHECK(members[i].bytes == entries[i].bytes);
    CHECK(members[i].header_begin == entries[i].header_begin);
  }
  CHECK(members[2].end == at);
}

TEST_CASE("more members than 16 bits count are written and read") {
  std::string file;
  std::vector<ZipEntry> entries;
  for (int i = 0; i < 65'537; ++i) {
    entries.push_back({fmt::format("{}.npy", i), 0, 0, file.size()});
    file += write_zip_local_header(entries.back());
  }
  file += write_zip_directory(entries, file.size());
  CHECK(std::get<Members>(read(file)).size() == 65'537);
}

}  // namespace
}  // namespace masque::store
