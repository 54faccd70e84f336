// TensorFlow bundles that we write: TensorFlow's own bytes, read again as they were, and both files
// or none.
#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/digest/crc32c.hpp"
#include "base/digest/hash.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/tensorflow/bundle_entry.hpp"
#include "store/tensorflow/leveldb_table.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::message_of;
using test::names_in;
using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kTypes = MASQUE_TEST_DATA "/bundle_writer/types";
constexpr const char* kData = ".data-00000-of-00001";

std::string both_files(const std::string& prefix) {
  return read_file(prefix + ".index") + read_file(prefix + kData);
}

/// Weights of one tensor of bytes.
OutputWeights weights_of(const std::string& name, const std::string& bytes) {
  OutputWeights weights;
  weights.writer = "tensorflow";
  weights.tensors.push_back(
      {{.name = name, .dtype = DType::kU8, .shape = {bytes.size()}}, Literal{bytes}});
  return weights;
}

TEST_CASE("a bundle of TensorFlow written again has the same bytes, of every type") {
  const TempFolder folder;
  const Checkpoint before = open_checkpoint(kTypes);
  CHECK(before.tensors().size() == 96);
  for (const int threads : {1, 2, 7}) {
    WriteOptions options;
    options.threads = threads;
    const std::string prefix = folder / fmt::format("out{}", threads);
    write_checkpoint_file(prefix + ".index", copy_of_bundle(before), options);
    CHECK((both_files(prefix) == both_files(kTypes)));
  }
}

TEST_CASE("every type that TensorFlow has survives, whatever order the tensors come in") {
  const TempFolder folder;
  const WeightsWriter& writer = weights_writer("tensorflow");
  OutputWeights weights;
  weights.writer = writer.name;
  std::vector<std::string> bytes;
  for (const DType dtype : all_dtypes()) {
    CHECK(writer.holds(dtype) == tensorflow_of_dtype(dtype).has_value());
    if (!writer.holds(dtype)) continue;
    bytes.push_back(random_bytes(bytes.size(), 6 * dtype_bits(dtype) / 8));
    const std::string name = fmt::format("{:02}", 99 - bytes.size());
    weights.tensors.push_back(
        {{.name = name, .dtype = dtype, .shape = {2, 3}}, Literal{bytes.back()}});
    weights.tensors.push_back({{.name = name + "/", .dtype = dtype, .shape = {0, 4}}, Literal{}});
  }
  CHECK(bytes.size() == 18);
  write_checkpoint_file(folder / "out.index", weights, {});
  const Checkpoint after = open_checkpoint(folder / "out");
  CHECK(after.notes().empty());
  CHECK_FALSE(check_sums(after.files()[0].file, after.files()[0].content).has_value());
  REQUIRE(after.tensors().size() == weights.tensors.size());
  for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
    const TensorInfo& wanted = weights.tensors[i].info;
    CHECK(after.get(wanted.name).dtype == wanted.dtype);
    CHECK(after.get(wanted.name).shape == wanted.shape);
    CHECK(bytes_of(after, wanted.name) == (i % 2 == 0 ? bytes[i / 2] : ""));
  }
}

TEST_CASE("data files, slices, packed indexes and strings become one plain bundle") {
  const std::string good = MASQUE_TEST_DATA "/tensorflow/good";
  const TempFolder folder;
  std::size_t files = 0;
  std::size_t opaque = 0;
  for (const std::string& name : names_in(good)) {
    if (!name.ends_with(".index")) continue;
    CAPTURE(name);
    ++files;
    const Checkpoint before = open_checkpoint(join(good, name));
    write_checkpoint_file(folder / name, copy_of_bundle(before), {});
    const Checkpoint after = open_checkpoint(folder / name);
    CHECK(after.files().size() == 1);
    CHECK(after.notes().empty());
    CHECK_FALSE(check_sums(after.files()[0].file, after.files()[0].content).has_value());
    CHECK(compare_checkpoints(before, after, {}).empty());
    CHECK(after.tensors().size() == before.tensors().size());
    CHECK_FALSE(different_opaque(before, after).has_value());
    opaque += after.opaque().size();
  }
  CHECK(files >= 8);
  CHECK(opaque >= 2);
}

// scripts/goldens/check_bundles.py prints the digest of what TensorFlow writes.
TEST_CASE("an index of several blocks has the same bytes as TensorFlow's") {
  std::vector<BundleItem> items;
  for (int i = 0; i < 20'000; ++i) {
    items.push_back({fmt::format("group_{:06}/layer/kernel", i * 7919 % 100'003),
                     *tensorflow_of_dtype(DType::kI8),
                     {},
                     0,
                     1,
                     masked_crc32c(crc32c(as_bytes("\3")))});
  }
  std::ranges::sort(items, {}, &BundleItem::name);
  for (std::size_t i = 0; i < items.size(); ++i) items[i].offset = i;
  const std::string index = write_bundle_index(items);
  const auto hasher = make_sha256();
  hasher->add(as_bytes(index));
  CHECK(index.size() == 651'279);
  CHECK(hasher->digest() == "6a5249abd914c7416ada644750570b267e1b3d7149573cdbeee37e1efb4e7894");
}

TEST_CASE("a table is read again whatever its keys and values are") {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"", ""}, {"\xFF", "x"}, {"\xFF\xFF", std::string(300'000, 'x')}, {"a", ""}, {"ab", "1"}};
  for (std::size_t i = 0; i < 3000; ++i) {
    rows.emplace_back(random_bytes(i, 1 + i % 9), std::string(i % 7 == 0 ? 1000 : 3, 'v'));
  }
  for (const std::size_t twin : {1U, 2U, 3U}) rows.emplace_back(std::string(twin, '\xFE'), "y");
  std::ranges::sort(rows);
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  rows.erase(std::unique(rows.begin(), rows.end(), same_key), rows.end());
  LevelDbTableWriter table;
  for (const auto& [key, value] : rows) table.add(key, value);
  const std::string text = table.finish();
  const auto read = value_or_throw(read_leveldb_table(as_bytes(text)));
  REQUIRE(read.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(read[i].key == rows[i].first);
    CHECK((read[i].value == rows[i].second));
  }
  CHECK(text.size() > 700'000);
}

TEST_CASE("a bundle is never written over, and what a killed run left is") {
  const TempFolder folder;
  write_checkpoint_file(folder / "x.index", weights_of("a", "old"), {});
  const std::string before = both_files(folder / "x");
  CHECK(contains(
      message_of([&] { write_checkpoint_file(folder / "x.index", weights_of("a", "new"), {}); }),
      "x.index: exists, and with its other files cannot be replaced in one step"));
  CHECK(both_files(folder / "x") == before);
  std::filesystem::remove(folder / "x.index");
  write_file(folder / ".x.index.masque-tmp/x.index", "left");
  write_checkpoint_file(folder / "x.index", weights_of("a", "new"), {});
  CHECK(bytes_of(open_checkpoint(folder / "x"), "a") == "new");
  CHECK(folder.names() == std::vector<std::string>{std::string("x") + kData, "x.index"});
}

TEST_CASE("what cannot be the name of a bundle or of a variable is refused") {
  const TempFolder folder;
  const auto why = [&](const char* path, const OutputWeights& weights) {
    return message_of([&] { write_checkpoint_file(folder / path, weights, {}); });
  };
  const OutputWeights good = weights_of("a", "1");
  for (const char* path : {"x.ckpt", ".index", "index"})
    CHECK(contains(why(path, good), "must be called NAME.index and NAME.data-00000-of-00001"));
  for (const std::string& name : {std::string(), std::string("\0a", 2), std::string(70'000, 'a')})
    CHECK(contains(why("x.index", weights_of(name, "1")), "expected a plain name"));
  OutputWeights twice = good;
  twice.tensors.push_back(good.tensors.front());
  CHECK(contains(why("x.index", twice), "two variables called 'a'"));
  OutputWeights wide = good;
  wide.tensors[0] = {{.name = "a", .dtype = DType::kU8, .shape = {0, 1ULL << 63}}, Literal{}};
  CHECK(contains(why("x.index", wide), "tensor 'a' has a dimension of more than 2^63 - 1"));
  OutputWeights opaque = good;
  opaque.opaque.push_back({{.name = "b", .type = "Q4_K", .shape = {}}, Literal{}});
  CHECK(contains(why("x.index", opaque), "tensor 'b' is Q4_K"));
  CHECK(folder.names().empty());
  write_file(folder / "folder/in", "");
  std::filesystem::create_symlink(folder / "folder", folder / (std::string("x") + kData));
  CHECK(contains(why("x.index", good), "is a symbolic link"));
}

TEST_CASE("damaged data are not written again with a good sum") {
  const TempFolder folder;
  write_checkpoint_file(folder / "x.index", weights_of("a", "good"), {});
  write_file(folder / (std::string("x") + kData), "gone");
  const Checkpoint damaged = open_checkpoint(folder / "x");
  CHECK(contains(message_of([&] { copy_of_bundle(damaged); }), "bundle-crc"));
}

}  // namespace
}  // namespace masque::store
