// Tables against LevelDB's own library: it reads what we write, and we read what it writes.
#include "store/tensorflow/leveldb_table.hpp"

#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>

#include <map>
#include <memory>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "store/values.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

using Sorted = std::map<std::string, std::string>;

void require_ok(const leveldb::Status& status) { REQUIRE_MESSAGE(status.ok(), status.ToString()); }

leveldb::Slice slice_of(const std::string& text) { return {text.data(), text.size()}; }

/// Keys of any bytes, the empty one too, many of them long and alike at the beginning; values from
/// none to some that are larger than a block.
Sorted random_entries(std::uint64_t run) {
  Draw draw(run, "table");
  Sorted out{{"", "header"}};
  const auto count = draw.below(400);
  std::string key;
  for (Index i = 0; i < count; ++i) {
    key.resize(static_cast<std::size_t>(draw.below(static_cast<Index>(key.size()) + 1)));
    key += random_bytes(run * 1000 + static_cast<std::uint64_t>(i),
                        static_cast<std::size_t>(1 + draw.below(draw.below(20) == 0 ? 300 : 12)));
    const auto size = static_cast<std::size_t>(draw.below(draw.below(100) == 0 ? 400'000 : 60));
    // Half of the values can be packed.
    out[key] = draw.below(2) == 0 ? std::string(size, static_cast<char>(draw.below(256)))
                                  : random_bytes(static_cast<std::uint64_t>(i), size);
  }
  return out;
}

Sorted read_by_us(const std::string& file) {
  Sorted out;
  const auto entries = value_or_throw(read_leveldb_table(as_bytes(file)));
  for (const TableEntry& entry : entries) out[entry.key] = entry.value;
  CHECK(out.size() == entries.size());
  return out;
}

std::string written_by_leveldb(const std::string& path, const Sorted& entries,
                               const leveldb::Options& options) {
  leveldb::WritableFile* opened = nullptr;
  require_ok(leveldb::Env::Default()->NewWritableFile(path, &opened));
  const std::unique_ptr<leveldb::WritableFile> file(opened);
  leveldb::TableBuilder builder(options, file.get());
  for (const auto& [key, value] : entries) builder.Add(slice_of(key), slice_of(value));
  require_ok(builder.Finish());
  require_ok(file->Close());
  return read_file(path);
}

Sorted read_by_leveldb(const std::string& path, std::uint64_t size) {
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::RandomAccessFile* opened = nullptr;
  require_ok(leveldb::Env::Default()->NewRandomAccessFile(path, &opened));
  const std::unique_ptr<leveldb::RandomAccessFile> file(opened);
  leveldb::Table* opened_table = nullptr;
  require_ok(leveldb::Table::Open(options, file.get(), size, &opened_table));
  const std::unique_ptr<leveldb::Table> table(opened_table);
  leveldb::ReadOptions reading;
  reading.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> at(table->NewIterator(reading));
  Sorted out;
  for (at->SeekToFirst(); at->Valid(); at->Next())
    out[at->key().ToString()] = at->value().ToString();
  require_ok(at->status());
  // By key, through the index block's separators.
  for (const auto& [key, value] : out) {
    at->Seek(slice_of(key));
    REQUIRE(at->Valid());
    CHECK(at->value().ToString() == value);
  }
  return out;
}

TEST_CASE("LevelDB reads the tables that we write") {
  const TempFolder folder;
  for (std::uint64_t run = 0; run < 40; ++run) {
    CAPTURE(run);
    const Sorted entries = random_entries(run);
    LevelDbTableWriter writer;
    for (const auto& [key, value] : entries) writer.add(key, value);
    const std::string file = writer.finish();
    write_file(folder / "ours", file);
    CHECK((read_by_leveldb(folder / "ours", file.size()) == entries));
    CHECK((read_by_us(file) == entries));
  }
}

TEST_CASE("we read the tables that LevelDB writes, raw and packed, whatever its blocks") {
  const TempFolder folder;
  for (std::uint64_t run = 0; run < 60; ++run) {
    CAPTURE(run);
    const Sorted entries = random_entries(100 + run);
    leveldb::Options options;
    options.block_size = std::size_t{64} << (run % 13);
    options.block_restart_interval = 1 + static_cast<int>(run % 17);
    options.compression = run % 2 == 0 ? leveldb::kSnappyCompression : leveldb::kNoCompression;
    CHECK((read_by_us(written_by_leveldb(folder / "theirs", entries, options)) == entries));
  }
}

}  // namespace
}  // namespace masque::store
