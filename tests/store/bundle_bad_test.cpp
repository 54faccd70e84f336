// Rules of TensorFlow's indexes and of the tables they are: a bad file for each, made from a good
// one; every cut and every flipped bit.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "store/checkpoint.hpp"
#include "support/bundle_oracle.hpp"
#include "support/make_bundle.hpp"
#include "support/rules.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::bundle_entry;
using test::bundle_header;
using test::BundleParts;
using test::field;
using test::handle;
using test::make_block;
using test::make_index;
using test::make_table;
using test::make_table_of;
using test::number;
using test::Rows;
using test::sealed;
using test::slice_field;
using test::table_footer;
using test::varint;

constexpr std::uint64_t kNegative = ~std::uint64_t{0};

/// The rule that an index breaks whose only data file has 24 bytes.
std::string rule_of(const std::string& text) {
  CHECK(test::wrong_bundle(text, TableSums::kCompared) == "");
  const auto parsed = parse_bundle_index(text);
  if (const auto* violation = std::get_if<Violation>(&parsed)) return violation->rule;
  const auto& index = std::get<BundleIndex>(parsed);
  const std::vector<std::uint64_t> sizes(index.shards, 24);
  const auto placed = place_bundle(index, sizes, {});
  const auto* violation = std::get_if<Violation>(&placed);
  return violation == nullptr ? "" : violation->rule;
}

/// An index with the tensor "w" and what else is given.
std::string with_entry(const BundleParts& parts, Rows before = {}) {
  before.emplace_back("w", bundle_entry(parts));
  return make_index(before);
}

std::string with_message(const std::string& message) { return make_index({{"w", message}}); }

std::string with_header(const std::string& header) { return make_index({}, header); }

/// One block of data that is given as its bytes; the index says that it goes up to "zzz".
std::string with_block(const std::string& block, char kind = 0) {
  return make_table_of({{"zzz", sealed(block, kind)}});
}

std::string entry_bytes(std::uint64_t shared, const std::string& key, const std::string& value) {
  return varint(shared) + varint(key.size()) + varint(value.size()) + key + value;
}

std::string restarts(const std::vector<std::uint64_t>& places) {
  std::string out;
  for (const std::uint64_t place : places) out += number(place, 4);
  return out + number(places.size(), 4);
}

/// The tensor "w" of shape [4,3] in slices of rows [0,2) and [2,4), each 24 bytes in a data file
/// of its own; `change` is done to slices and entries.
std::string sliced(std::vector<BundleSlice> listed, std::vector<BundleSlice> entries,
                   const BundleParts& part = {}, const BundleParts& whole = {.shape = {4, 3}}) {
  Rows rows;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    BundleParts parts = part;
    parts.shard = i % 2;
    rows.emplace_back(slice_key("w", entries[i]), bundle_entry(parts));
  }
  std::ranges::sort(rows);
  BundleParts parts = whole;
  parts.size = 0;
  for (const BundleSlice& slice : listed) {
    std::string extents;
    for (const BundleExtent& extent : slice)
      extents += field(1, field(1, extent.start) + (extent.length ? field(2, *extent.length) : ""));
    parts.slices += field(7, extents);
  }
  rows.emplace_back("w", bundle_entry(parts));
  return make_index(rows, bundle_header(2));
}

const BundleSlice kUpper = {{0, 2}, {0, std::nullopt}};
const BundleSlice kLower = {{2, 2}, {0, std::nullopt}};

struct BadCase {
  std::string rule;
  std::string file;
};

std::vector<BadCase> bad_tables() {
  const std::string good = make_index({{"w", bundle_entry({})}});
  const std::size_t footer = good.size() - 48;
  const std::string meta = sealed(make_block({}));
  const std::string data = sealed(make_block({{"", bundle_header()}}));
  const auto footed = [&](const std::string& first, const std::string& second) {
    return data + meta + table_footer(first, second);
  };
  std::string rest = good;
  rest[footer + 39] = 1;
  std::string flipped = good;
  flipped[3] = static_cast<char>(flipped[3] ^ 1);
  const Rows two = {{"", bundle_header()}, {"w", bundle_entry({})}};
  const std::string head = entry_bytes(0, "", bundle_header());
  const std::string entry = entry_bytes(0, "w", bundle_entry({}));
  const std::string index = sealed(make_block({{"zzz", "x"}}));
  const std::string longer = sealed(make_block({{"zzz", handle(0, data) + "x"}}));
  return {
      {"table-footer", ""},
      {"table-footer", good.substr(1, 47)},
      {"table-footer", good.substr(0, good.size() - 1)},
      {"table-footer", footed(std::string(10, '\xFF') + "\x02", handle(0, data))},
      {"table-footer", footed(std::string(40, '\xFF'), "")},
      {"table-footer", rest},
      {"table-handle", footed(varint(1) + varint(999), handle(0, data))},
      {"table-handle", footed(handle(data.size(), meta), varint(kNegative) + varint(8))},
      {"table-handle", footed(handle(data.size(), meta), varint(8) + varint(kNegative))},
      {"table-handle", footed(handle(data.size(), meta), varint(8) + varint(kNegative - 8))},
      {"table-handle", footed(handle(data.size(), meta), handle(data.size(), meta))},
      {"table-handle", meta + index + table_footer(handle(0, meta), handle(meta.size(), index))},
      {"table-handle",
       data + meta + longer +
           table_footer(handle(data.size(), meta), handle(data.size() + meta.size(), longer))},
      {"table-crc", flipped},
      {"table-kind", with_block(make_block(two), 2)},
      {"table-snappy", with_block(make_block(two), 1)},
      {"table-snappy", with_block("", 1)},
      {"table-snappy", with_block(varint(1000) + "abc", 1)},
      {"table-block", with_block("")},
      {"table-block", with_block("abc")},
      {"table-block", with_block(number(0, 4))},
      {"table-block", with_block(head + number(0, 4) + number(1000, 4))},
      {"table-block", with_block(restarts({0, 0}))},
      {"table-block", with_block(restarts({1}))},
      {"table-block", with_block(head + entry + restarts({1}))},
      {"table-block", with_block(head + entry + restarts({0, head.size() + 1}))},
      {"table-block", with_block(head + entry + restarts({0, head.size(), head.size()}))},
      {"table-block", with_block(head + entry_bytes(0, "ab", "") + entry_bytes(1, "c", "") +
                                 restarts({0, head.size() + 5}))},
      {"table-block", with_block(head + entry_bytes(1, "c", "") + restarts({0}))},
      {"table-block", with_block(head.substr(0, head.size() - 1) + restarts({0}))},
      {"table-block", with_block(varint(0) + varint(kNegative) + varint(0) + restarts({0}))},
      {"table-block", with_block(varint(0) + varint(1) + varint(kNegative) + "x" + restarts({0}))},
      {"table-block", with_block(head + std::string(12, '\xFF') + restarts({0}))},
      {"table-order", with_block(head + entry + entry + restarts({0}))},
      {"table-order", with_block(head + entry + entry_bytes(0, "v", "") + restarts({0}))},
      {"table-order", with_block(make_block({}))},
      {"table-order", make_table_of({{"v", sealed(make_block(two))}})},
      {"table-order",
       make_table_of({{"w", sealed(make_block(two))}, {"x", sealed(make_block({{"w", ""}}))}})},
      {"limit-name", with_block(entry_bytes(0, std::string(65'537, 'a'), "") + restarts({0}))},
  };
}

std::vector<BadCase> bad_entries() {
  const std::string versions = field(2, std::uint64_t{2});
  const std::vector<std::uint64_t> many(65, 1);
  return {
      {"bundle-header", make_table({})},
      {"bundle-header", make_table({{"w", bundle_entry({})}})},
      {"bundle-header", with_header("")},
      {"bundle-header", with_header(bundle_header(1001))},
      {"bundle-header", with_header(bundle_header(kNegative))},
      {"bundle-header", with_header(bundle_header() + "\x07")},
      {"bundle-header", with_header(bundle_header() + field(3, std::string("\x08")))},
      {"bundle-header", with_header(bundle_header() + field(3, field(3, std::string("\xFF"))))},
      {"bundle-endianness", with_header(bundle_header() + field(2, std::uint64_t{1}))},
      {"bundle-version", with_header(field(1, std::uint64_t{1}) + field(3, versions))},
      {"bundle-version", with_header(bundle_header() + field(3, field(3, std::uint64_t{1})))},
      {"bundle-version",
       with_header(bundle_header() + field(3, field(3, std::string("\x05\x01"))))},
      {"unsupported-format", with_header(field(1, field(1, std::string("w"))))},
      {"not-utf8", make_index({{"\xFF", bundle_entry({})}})},
      {"bundle-entry", with_message("\x08")},
      {"bundle-entry", with_message("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02")},
      {"bundle-entry", with_message(std::string("\x00\x01", 2))},
      {"bundle-entry", with_message("\x0B")},
      {"bundle-entry", with_message(field(1, std::string()))},
      {"bundle-entry", with_message(field(2, std::uint64_t{1}))},
      {"bundle-entry", with_message(field(4, std::string()))},
      {"bundle-entry", with_message(field(6, std::uint64_t{1}))},
      {"bundle-entry", with_message(field(7, std::uint64_t{1}))},
      {"bundle-entry", with_message(field(2, field(3, std::uint64_t{1})))},
      {"bundle-entry", with_message(field(2, std::string("\x08")))},
      {"bundle-entry", with_message(field(2, field(2, std::string("\x08"))))},
      {"bundle-entry", with_message(field(7, std::string("\x08")))},
      {"bundle-entry", with_message(field(7, field(1, std::string("\x08"))))},
      {"bundle-entry", with_message(bundle_entry({}) + "\x09" + "1234567")},
      {"bad-number", with_entry({.shard = kNegative})},
      {"bad-number", with_entry({.offset = std::uint64_t{1} << 63})},
      {"bad-number", with_entry({.size = kNegative})},
      {"bad-number", with_entry({.shape = {2, kNegative}})},
      {"bad-number", with_entry({.slices = slice_field({{kNegative, 1}})})},
      {"bad-number", with_entry({.slices = slice_field({{0, kNegative}})})},
      {"limit-rank", with_entry({.shape = many})},
      {"limit-rank", with_entry({.slices = slice_field(std::vector(
                                     65, std::pair<std::uint64_t, std::uint64_t>(0, 1)))})},
      {"unknown-dtype", with_entry({.type = 0})},
      {"unknown-dtype", with_entry({.type = 101})},
      {"bundle-shard", with_entry({.shard = 1})},
      {"bundle-bounds", with_entry({.offset = 1})},
      {"bundle-bounds", with_entry({.offset = (std::uint64_t{1} << 63) - 1})},
      {"bundle-bounds", with_entry({.type = 7, .size = 25})},
      {"shape-overflow", with_entry({.shape = {std::uint64_t{1} << 62, 8}})},
      {"shape-overflow", with_entry({.type = 7, .shape = {std::uint64_t{1} << 62, 8}})},
      {"size-mismatch", with_entry({.size = 20})},
      {"size-mismatch", with_entry({.shape = {}})},
      {"size-mismatch", with_entry({.type = 12})},
      {"size-mismatch", with_entry({.type = 18, .shape = {2}, .size = 24})},
      {"shape-overflow", with_entry({.type = 18, .shape = {std::uint64_t{1} << 61}})},
      {"overlap", with_entry({.shape = {2}, .offset = 4, .size = 8},
                             {{"v", bundle_entry({.shape = {2}, .size = 8})}})},
      {"overlap", with_entry({}, {{"v", bundle_entry({.type = 7, .offset = 23, .size = 1})}})},
  };
}

std::vector<BadCase> bad_slices() {
  const BundleSlice late = {{3, 1}, {0, std::nullopt}};
  const BundleSlice long_one = {{0, 3}, {0, std::nullopt}};
  const BundleSlice beyond = {{2, 3}, {0, std::nullopt}};
  const BundleSlice left = {{0, 2}, {0, 1}};
  const BundleSlice inner = {{1, 2}, {0, std::nullopt}};
  return {
      {"bundle-slice", sliced({kUpper, kLower}, {kUpper})},
      {"bundle-slice", sliced({kUpper}, {kUpper, kLower})},
      {"bundle-slice", sliced({kUpper, kUpper}, {kUpper, kLower})},
      {"bundle-slice", sliced({kUpper, late}, {kUpper, late})},
      {"bundle-slice", sliced({long_one, kLower}, {long_one, kLower})},
      {"bundle-slice", sliced({kUpper, beyond}, {kUpper, beyond})},
      {"bundle-slice", sliced({left, kLower}, {left, kLower})},
      {"bundle-slice", sliced({inner, kLower}, {inner, kLower})},
      {"bundle-slice", sliced({{{0, 2}}, {{2, 2}}}, {})},
      {"bundle-slice", sliced({kUpper, kLower}, {kUpper, kLower}, {.shape = {3, 2}})},
      {"bundle-slice", sliced({kUpper, kLower}, {kUpper, kLower}, {.type = 3})},
      {"bundle-slice",
       sliced({kUpper, kLower}, {kUpper, kLower}, {}, {.type = 3, .shape = {4, 3}})},
      {"bundle-slice",
       sliced({kUpper, kLower}, {kUpper, kLower}, {.slices = slice_field({{0, 1}})})},
      {"bundle-slice", make_index({{std::string("\0w", 2), bundle_entry({})}})},
      {"unknown-dtype",
       sliced({kUpper, kLower}, {kUpper, kLower}, {}, {.type = 7, .shape = {4, 3}})},
      {"shape-overflow",
       sliced({kUpper, kLower}, {kUpper, kLower}, {}, {.shape = {std::uint64_t{1} << 62, 8}})},
      {"bundle-bounds", sliced({kUpper, kLower}, {kUpper, kLower}, {.offset = 1})},
      {"size-mismatch", sliced({kUpper, kLower}, {kUpper, kLower}, {.size = 23})},
  };
}

std::vector<BadCase> bad_cases() {
  std::vector<BadCase> all = bad_tables();
  for (const auto& more : {bad_entries(), bad_slices()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("the indexes that the bad ones are made from are good") {
  CHECK(rule_of(with_entry({})) == "");
  CHECK(rule_of(make_index({})) == "");
  CHECK(rule_of(sliced({kUpper, kLower}, {kUpper, kLower})) == "");
  CHECK(rule_of(sliced({kLower, kUpper}, {kUpper, kLower})) == "");
  CHECK(rule_of(with_entry({.type = 77, .size = 3})) == "");
  CHECK(rule_of(with_entry({.shape = {0, 5}, .offset = 24, .size = 0})) == "");
  CHECK(rule_of(make_index({{"w", bundle_entry({}) + field(99, std::string("later"))}})) == "");
}

TEST_CASE("every bad index is refused by its rule") {
  int row_number = 0;
  for (const BadCase& row : bad_cases()) {
    CAPTURE(row_number);
    CHECK(rule_of(row.file) == row.rule);
    ++row_number;
  }
}

TEST_CASE("tables are not larger than their limits") {
  Rows rows;
  for (int i = 10; i < 30; ++i) rows.emplace_back("key" + std::to_string(i), "value");
  const std::string file = make_table(rows, 5);
  const auto rule_with = [&](const TableLimits& limits) {
    const auto read = read_leveldb_table(as_bytes(file), TableSums::kCompared, limits);
    const auto* violation = std::get_if<Violation>(&read);
    return violation == nullptr ? "" : violation->rule;
  };
  CHECK(rule_with({}) == "");
  CHECK(rule_with({.key_bytes = 5, .entries = 20, .expanded_bytes = 10'000}) == "");
  CHECK(rule_with({.key_bytes = 4}) == "limit-name");
  CHECK(rule_with({.entries = 19}) == "limit-tensors");
  CHECK(rule_with({.expanded_bytes = 199}) == "limit-expanded");
  CHECK(rule_with({.block_bytes = 20}) == "limit-block");
  const std::string packed = make_table_of({{"zzz", sealed(varint(1000) + "x", 1)}});
  const auto read = read_leveldb_table(as_bytes(packed), TableSums::kCompared, {.block_bytes = 99});
  CHECK(std::get<Violation>(read).rule == "limit-block");
}

TEST_CASE("every rule of the sources of TensorFlow's files has a test") {
  std::set<std::string> tested = {"bundle-crc", "limit-block", "limit-tensors", "limit-expanded"};
  for (const BadCase& row : bad_cases()) tested.insert(row.rule);
  std::set<std::string> written;
  for (const char* file : {"bundle.cpp", "bundle_entry.cpp", "leveldb_table.cpp"})
    written.merge(
        test::rules_in(test::read_file(std::string(MASQUE_SOURCES "/store/tensorflow/") + file)));
  CHECK(written == tested);
}

/// What the entries of a valid index say.
std::string entries_of(const Checked<BundleIndex>& parsed) {
  std::string out;
  for (const BundleEntry& entry : std::get<BundleIndex>(parsed).entries) {
    out += entry.name + shape_text(entry.shape);
    for (const std::uint64_t part : {entry.type, entry.shard, entry.offset, entry.size})
      out += " " + std::to_string(part);
  }
  return out;
}

TEST_CASE("no cut and no flipped bit of an index passes") {
  for (const char* name : {"snappy", "partitioned", "dtypes"}) {
    const std::string good =
        test::read_file(MASQUE_TEST_DATA "/tensorflow/good/" + std::string(name) + ".index");
    CAPTURE(name);
    for (std::size_t end = 0; end < good.size(); ++end) {
      CAPTURE(end);
      CHECK(std::holds_alternative<Violation>(parse_bundle_index(good.substr(0, end))));
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
        CAPTURE(at);
        CAPTURE(bit);
        const auto parsed = parse_bundle_index(bad);
        if (std::holds_alternative<BundleIndex>(parsed)) {
          // The last number of the footer, with one byte more.
          CHECK((bit == 7 && at >= good.size() - 48 && at < good.size() - 8));
          CHECK(entries_of(parsed) == entries_of(parse_bundle_index(good)));
        }
        CHECK(test::wrong_bundle(bad, TableSums::kIgnored) == "");
      }
    }
  }
}

}  // namespace
}  // namespace masque::store
