// Edits of TensorFlow bundles: in place with the sums that follow, and as new bundles of one data
// file.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/digest/crc32c.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/tensorflow/leveldb_table.hpp"
#include "store/tensorflow/wire.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "surgery/convert/convert_checkpoint.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/edit/edit_in_place.hpp"
#include "surgery/example.hpp"
#include "surgery/names/rename_tensors.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::Faults;
using test::message_of;
using test::names_in;
using test::read_file;
using test::TempFolder;
using test::write_file;

using Names = std::vector<std::string>;

const std::string kIndex = "bert_model.ckpt.index";
const std::string kData = "bert_model.ckpt.data-00000-of-00001";

CorrectionRequest request_of(bool in_place) {
  CorrectionRequest request;
  request.in_place = in_place;
  request.tied = TiedPolicy::kKeep;
  request.verify = true;
  request.write.threads = 2;
  return request;
}

bool same_tensors(const std::string& a, const std::string& b) {
  return store::compare_checkpoints(store::open_checkpoint(a), store::open_checkpoint(b), {})
      .empty();
}

bool sums_are_right(const std::string& path) {
  const store::Checkpoint checkpoint = store::open_checkpoint(path);
  return std::ranges::none_of(checkpoint.files(), [](const store::WeightsFile& file) {
    return store::check_sums(file.file, file.content).has_value();
  });
}

/// The folder of an ExampleBert as a bundle.
void write_bundle(const TempFolder& folder, const std::string& name) {
  ExampleBert().write(folder, "plain");
  surgery::ConvertRequest request;
  request.format = "tensorflow";
  surgery::convert_checkpoint(folder / "plain", folder / name, request);
}

/// What an index says of a tensor, or of a slice of one.
struct Entry {
  std::string key;
  Shape shape;
  unsigned shard = 0;
  std::uint64_t offset = 0;
  std::string bytes;
  std::string slices = {};  ///< field 7, ready
};

std::string index_of(std::vector<Entry> entries, unsigned shards) {
  std::ranges::sort(entries, {}, &Entry::key);
  store::LevelDbTableWriter table;
  std::string header;
  store::wire::put_number(header, 1, shards);
  table.add("", header);
  for (const Entry& entry : entries) {
    std::string shape;
    for (const std::uint64_t size : entry.shape) {
      std::string dimension;
      store::wire::put_number(dimension, 1, size);
      store::wire::put_bytes(shape, 2, dimension);
    }
    std::string value;
    store::wire::put_number(value, 1, 1);  // F32
    store::wire::put_bytes(value, 2, shape);
    store::wire::put_number(value, 3, entry.shard);
    store::wire::put_number(value, 4, entry.offset);
    store::wire::put_number(value, 5, entry.bytes.size());
    if (entry.slices.empty())
      store::wire::put_fixed32(value, 6, masked_crc32c(crc32c(as_bytes(entry.bytes))));
    table.add(entry.key, value + entry.slices);
  }
  return table.finish();
}

std::string bytes_of(const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * 4);
  from_double(DType::kF32, values, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The folder of an ExampleBert as a bundle of two data files; the table is in the second one.
void write_two_shards(const TempFolder& folder, const std::string& name) {
  const auto tensors = ExampleBert().tensors();
  const std::string table = bytes_of(tensors[0].values);
  const std::string bias = bytes_of(tensors[1].values);
  const std::string other = bytes_of(tensors[2].values);
  write_file(folder / (name + "/m.index"),
             index_of({{tensors[0].name, tensors[0].shape, 1, 0, table},
                       {tensors[1].name, tensors[1].shape, 0, 0, bias},
                       {tensors[2].name, tensors[2].shape, 0, bias.size(), other}},
                      2));
  write_file(folder / (name + "/m.data-00000-of-00002"), bias + other);
  write_file(folder / (name + "/m.data-00001-of-00002"), table);
  write_file(folder / (name + "/config.json"), ExampleBert().config);
  write_file(folder / (name + "/vocab.txt"), kVocabulary);
}

TEST_CASE("a bundle changed in place is what an output would be, byte for byte") {
  const TempFolder folder;
  write_bundle(folder, "tf");
  const std::string index = read_file(folder / "tf/" + kIndex);
  correct_checkpoint(folder / "tf", folder / "out", request_of(false));
  const auto report = correct_checkpoint(folder / "tf/bert_model.ckpt", "", request_of(true));
  REQUIRE(report.verified);
  CHECK(report.verified->tensors_unchanged == 2);
  CHECK(report.verified->digest_before == report.verified->digest_after);
  CHECK(names_in(folder / "tf") == Names{kData, kIndex, "config.json", "vocab.txt"});
  CHECK(names_in(folder / "out") == names_in(folder / "tf"));
  for (const std::string& name : names_in(folder / "tf"))
    CHECK(read_file(folder / "tf/" + name) == read_file(folder / "out/" + name));
  CHECK(read_file(folder / "tf/" + kIndex) != index);
  CHECK(sums_are_right(folder / "tf"));
  correct_checkpoint(folder / "plain", folder / "twin", request_of(false));
  CHECK(same_tensors(folder / "tf", folder / "twin"));
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "tf", "", request_of(true)); }),
                 "is already corrected"));
}

TEST_CASE("the data files are locked, and one of them by its name, as a message about it says") {
  const TempFolder folder;
  write_two_shards(folder, "tf");
  const auto locked = [&](const char* name) {
    Names names;
    const LockedFiles files = store::lock_checkpoint(folder / "tf" + name, 0);
    for (const auto& file : files.files()) names.push_back(file.name);
    return names;
  };
  const Names both = {"m.data-00000-of-00002", "m.data-00001-of-00002"};
  for (const char* name : {"", "/m", "/m.index"}) CHECK(locked(name) == both);
  CHECK(locked("/m.data-00001-of-00002") == Names{both[1]});
}

TEST_CASE("of several data files one becomes another in place, and all become one as an output") {
  const TempFolder folder;
  write_two_shards(folder, "tf");
  ExampleBert().write(folder, "plain");
  REQUIRE(same_tensors(folder / "tf", folder / "plain"));
  const std::string first = read_file(folder / "tf/m.data-00000-of-00002");
  const std::string second = read_file(folder / "tf/m.data-00001-of-00002");
  correct_checkpoint(folder / "tf", folder / "out", request_of(false));
  CHECK(names_in(folder / "out") ==
        Names{"config.json", "m.data-00000-of-00001", "m.index", "vocab.txt"});
  correct_checkpoint(folder / "tf", "", request_of(true));
  CHECK(read_file(folder / "tf/m.data-00000-of-00002") == first);
  CHECK(read_file(folder / "tf/m.data-00001-of-00002") != second);
  for (const char* name : {"tf", "out"}) {
    CHECK(sums_are_right(folder / name));
    CHECK(same_tensors(folder / name, folder / "out"));
  }
  correct_checkpoint(folder / "plain", "", request_of(true));
  CHECK(same_tensors(folder / "tf", folder / "plain"));
  surgery::rename_tensors(store::open_checkpoint(folder / "tf"), {{"other", {"others", false}}},
                          folder / "renamed", {});
  CHECK(names_in(folder / "renamed") == names_in(folder / "out"));
  CHECK(store::open_checkpoint(folder / "renamed").find("others") != nullptr);
}

TEST_CASE("a table in slices is not changed in place, and whole as an output") {
  const TempFolder folder;
  write_two_shards(folder, "tf");
  const auto tensors = ExampleBert().tensors();
  const std::string table = bytes_of(tensors[0].values);
  std::string slices;
  std::vector<Entry> entries;
  for (const auto& [start, rows] : {std::pair<std::uint64_t, std::uint64_t>{0, 6}, {6, 5}}) {
    std::string extent;
    store::wire::put_number(extent, 1, start);
    store::wire::put_number(extent, 2, rows);
    std::string slice;
    store::wire::put_bytes(slice, 1, extent);
    store::wire::put_bytes(slice, 1, "");
    store::wire::put_bytes(slices, 7, slice);
    const std::string bytes = table.substr(start * 20, rows * 20);
    entries.push_back({store::slice_key(kTable, {{start, rows}, {0, std::nullopt}}),
                       {rows, 5},
                       0,
                       start * 20,
                       bytes});
  }
  entries.push_back({kTable, {11, 5}, 0, 0, "", slices});
  const std::string bias = bytes_of(tensors[1].values);
  entries.push_back({tensors[1].name, tensors[1].shape, 0, table.size(), bias});
  write_file(folder / "sliced/m.index", index_of(entries, 1));
  write_file(folder / "sliced/m.data-00000-of-00001", table + bias);
  write_file(folder / "sliced/vocab.txt", kVocabulary);
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "sliced", "", request_of(true)); }),
                 "is not stored contiguously: not supported in place"));
  correct_checkpoint(folder / "sliced", folder / "out", request_of(false));
  CHECK(store::open_checkpoint(folder / "out").get(kTable).reader == nullptr);
  CHECK(sums_are_right(folder / "out"));
  correct_checkpoint(folder / "tf", folder / "whole", request_of(false));
  CHECK(values_of(store::open_checkpoint(folder / "out"), kTable) ==
        values_of(store::open_checkpoint(folder / "whole"), kTable));
}

TEST_CASE("of every bundle of TensorFlow a tensor changes in place, and nothing else does") {
  const std::string good = MASQUE_TEST_DATA "/tensorflow/good";
  std::size_t files = 0;
  for (const std::string& name : names_in(good)) {
    if (!name.ends_with(".index")) continue;
    CAPTURE(name);
    const TempFolder folder;
    const std::string prefix = name.substr(0, name.size() - 5);
    for (const std::string& other : names_in(good)) {
      if (other.starts_with(prefix)) write_file(folder / other, read_file(join(good, other)));
    }
    const store::Checkpoint before = store::open_checkpoint(join(good, name));
    const LockedFiles locked = store::lock_checkpoint(folder / name, 0);
    const store::Checkpoint checkpoint = store::open_checkpoint(folder / name);
    CheckpointEdit edit(checkpoint);
    for (const store::TensorInfo& tensor : checkpoint.tensors()) {
      if (!tensor.reader && tensor.bytes() > 0 && edit.replaced().empty())
        edit.replace(tensor.name, tensor.shape, store::Literal{std::string(tensor.bytes(), '\1')});
    }
    REQUIRE(edit.replaced().size() == 1);
    const InPlaceResult result = write_in_place(edit, locked, {.verify = true});
    CHECK(result.verified);
    const store::Checkpoint after = store::open_checkpoint(folder / name);
    CHECK(sums_are_right(folder / name));
    const auto differences = store::compare_checkpoints(before, after, {});
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].name == edit.replaced()[0]);
    CHECK(after.bundle()->shards == before.bundle()->shards);
    CHECK_FALSE(store::different_opaque(before, after).has_value());
    ++files;
  }
  CHECK(files >= 8);
}

TEST_CASE("damaged data get no good sum, in place or as an output") {
  const TempFolder folder;
  write_bundle(folder, "tf");
  std::string data = read_file(folder / "tf/" + kData);
  data[3] = static_cast<char>(data[3] ^ 1);
  write_file(folder / "tf/" + kData, data);
  const std::string index = read_file(folder / "tf/" + kIndex);
  for (const bool in_place : {true, false}) {
    CHECK(contains(message_of([&] {
                     correct_checkpoint(folder / "tf", in_place ? "" : folder / "out",
                                        request_of(in_place));
                   }),
                   "bundle-crc"));
  }
  CHECK(read_file(folder / "tf/" + kData) == data);
  CHECK(read_file(folder / "tf/" + kIndex) == index);
}

TEST_CASE("whatever write fails, both files are as they were") {
  const TempFolder folder = TempFolder::in_memory();
  write_bundle(folder, "tf");
  const auto files = [&] {
    std::string all;
    for (const std::string& name : names_in(folder / "tf"))
      all += name + read_file(folder / "tf/" + name);
    return all;
  };
  const std::string before = files();
  int failed = 0;
  for (int k = 1;; ++k) {
    int calls = 0;
    bool reached = false;
    std::string error;
    {
      const Faults faults([&](os::Call call, std::string_view, std::size_t) {
        const bool counts =
            call == os::Call::kPwrite || call == os::Call::kSync || call == os::Call::kRename;
        if (!counts || ++calls != k) return std::optional<os::Fault>();
        reached = true;
        return std::optional(os::Fault{.error = EIO});
      });
      CorrectionRequest request = request_of(true);
      request.write.threads = 1;
      error = message_of([&] { correct_checkpoint(folder / "tf", "", request); });
    }
    if (!reached) break;
    if (error.empty() || files() != before) {
      // The last sync of the folder: the change is made.
      CHECK(names_in(folder / "tf").size() == 4);
      CHECK(sums_are_right(folder / "tf"));
      break;
    }
    ++failed;
  }
  CHECK(failed > 8);
}

}  // namespace
}  // namespace masque::surgery
