// Checkpoints of TensorFlow read as what they are: dtypes, data files, slices, sums, names of
// files.
#include <doctest/doctest.h>

#include "base/digest/hash.hpp"
#include "base/file/in_place.hpp"
#include "store/tensorflow/bundle_place.hpp"
#include "store/tensorflow/object_graph.hpp"
#include "store/values.hpp"
#include "support/make_bundle.hpp"
#include "support/message.hpp"
#include "support/naive_json.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::message_of;

const std::string kGood = MASQUE_TEST_DATA "/tensorflow/good";

std::string unquote(const std::string& json) { return test::naive_json(json, 1).value().text; }

std::vector<std::string> prefixes() {
  std::vector<std::string> out;
  for (const std::string& name : test::names_in(kGood)) {
    if (name.ends_with(".index")) out.push_back(name.substr(0, name.size() - 6));
  }
  REQUIRE(out.size() == 8);
  return out;
}

std::vector<test::Row> rows_of(const char* table, const std::string& prefix) {
  auto rows = test::read_table(join(kGood, table), 5);
  std::erase_if(rows, [&](const test::Row& row) { return row[0] != prefix; });
  return rows;
}

/// Copies the files of a golden prefix; the data files get `to` as their prefix.
void copy_bundle(const std::string& prefix, const test::TempFolder& folder, const std::string& to) {
  for (const std::string& name : test::names_in(kGood)) {
    if (name.starts_with(prefix + "."))
      test::write_file(folder / (to + name.substr(prefix.size())),
                       test::read_file(join(kGood, name)));
  }
}

TEST_CASE("checkpoints of TensorFlow list their tensors with their values") {
  std::size_t tensors = 0;
  std::size_t opaque = 0;
  for (const std::string& prefix : prefixes()) {
    CAPTURE(prefix);
    const Checkpoint checkpoint = open_checkpoint(join(kGood, prefix));
    CHECK(checkpoint.notes().empty());
    CHECK(checkpoint.is_folder());
    CHECK(checkpoint.index_name() == prefix + ".index");
    const auto rows = rows_of("tensors.tsv", prefix);
    REQUIRE(checkpoint.tensors().size() == rows.size());
    for (const test::Row& row : rows) {
      const TensorInfo& tensor = checkpoint.get(unquote(row[1]));
      CAPTURE(row[1]);
      CHECK(dtype_name(tensor.dtype) == row[2]);
      CHECK(shape_text(tensor.shape) == row[3]);
      const auto hasher = make_sha256();
      hasher->add(as_bytes(bytes_of(checkpoint, tensor.name)));
      CHECK(hasher->digest() == row[4]);
    }
    tensors += rows.size();
    const auto others = rows_of("opaque.tsv", prefix);
    REQUIRE(checkpoint.opaque().size() == others.size());
    for (const test::Row& row : others) {
      const OpaqueTensor* found = checkpoint.find_opaque(unquote(row[1]));
      REQUIRE(found != nullptr);
      CHECK(found->type == row[2]);
      CHECK(shape_text(found->shape) == row[3]);
      CHECK(std::to_string(found->bytes()) == row[4]);
    }
    opaque += others.size();
  }
  CHECK(tensors > 90);
  CHECK(opaque == 11);
}

TEST_CASE("slices are gathered, whatever part is read") {
  std::size_t sliced = 0;
  for (const char* prefix : {"partitioned", "grid"}) {
    const Checkpoint checkpoint = open_checkpoint(join(kGood, prefix));
    for (const TensorInfo& tensor : checkpoint.tensors()) {
      if (tensor.reader == nullptr) continue;
      ++sliced;
      CAPTURE(tensor.name);
      const std::string all = bytes_of(checkpoint, tensor.name);
      for (std::uint64_t length : {1U, 3U, 8U, 100U, 777U}) {
        for (std::uint64_t begin = 0; begin + length <= all.size(); begin += length / 2 + 13) {
          std::string part(length, '\0');
          checkpoint.read(tensor, begin, std::as_writable_bytes(std::span(part)));
          REQUIRE(part == all.substr(begin, length));
        }
      }
    }
  }
  CHECK(sliced == 5);
}

TEST_CASE("all data are compared with their sums, strings too") {
  for (const std::string& prefix : prefixes()) {
    CAPTURE(prefix);
    const test::TempFolder folder;
    copy_bundle(prefix, folder, "m");
    const auto broken_shards = [&] {
      const Checkpoint checkpoint = open_checkpoint(folder / "m");
      int count = 0;
      for (const WeightsFile& file : checkpoint.files()) {
        const auto broken = check_sums(file.file, file.content);
        if (!broken) continue;
        ++count;
        CHECK(broken->rule == "bundle-crc");
        CHECK(broken->file == file.file.path());
        CHECK_FALSE(broken->tensor.empty());
      }
      return count;
    };
    CHECK(broken_shards() == 0);
    for (const std::string& name : folder.names()) {
      if (name == "m.index") continue;
      const std::string good = test::read_file(folder / name);
      for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 40) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 4);
        test::write_file(folder / name, bad);
        CAPTURE(at);
        CHECK(broken_shards() == 1);
      }
      test::write_file(folder / name, good);
    }
  }
}

TEST_CASE("a checkpoint is called by its prefix, its index or its folder") {
  const test::TempFolder folder;
  CHECK(contains(message_of([&] { open_checkpoint(folder / "m"); }), "No such file"));
  CHECK(contains(message_of([&] { open_checkpoint(folder.path()); }), "holds no weights"));
  copy_bundle("adam", folder, "m.ckpt-7");
  test::write_file(folder / "m.ckpt-7.meta", "graph");
  test::write_file(folder / "notes.index", "of a book");
  for (const std::string& path : {folder / "m.ckpt-7", folder / "m.ckpt-7.index", folder.path()}) {
    CAPTURE(path);
    const Checkpoint checkpoint = open_checkpoint(path);
    CHECK(checkpoint.tensors().size() == 13);
    CHECK(checkpoint.folder() == folder.path());
    CHECK(checkpoint.bundle().has_value());
    CHECK_FALSE(checkpoint.index().has_value());
    CHECK(lock_checkpoint(path, 0).files().size() == 1);
  }
  CHECK(contains(message_of([&] { open_checkpoint(folder / "m.ckpt-7.data-00000-of-00001"); }),
                 "give '" + (folder / "m.ckpt-7") + "' (the index"));
  CHECK(contains(message_of([&] { open_checkpoint(folder / "m.ckpt-7.meta"); }),
                 "is the graph of a TensorFlow checkpoint: give"));
  test::write_file(folder / "x.data-00000-of-00001", "");
  CHECK(contains(message_of([&] { open_checkpoint(folder / "x.data-00000-of-00001"); }),
                 "is missing"));
  test::write_file(folder / "pytorch_model.bin", "not a bundle");
  CHECK(contains(message_of([&] { open_checkpoint(folder.path()); }), "pytorch_model.bin"));
}

TEST_CASE("of several checkpoints in a folder the list says which") {
  const test::TempFolder folder;
  copy_bundle("adam", folder, "a");
  copy_bundle("shards", folder, "b");
  const std::string unclear = "has 2 TensorFlow checkpoints: give one, like '";
  CHECK(contains(message_of([&] { open_checkpoint(folder.path()); }), unclear));
  for (const char* list :
       {"", "model_checkpoint_path: \"c\"", "model_checkpoint_path: \"b",
        "model_checkpoint_path: \"\\142\"", "all_model_checkpoint_paths: \"b\""}) {
    CAPTURE(list);
    test::write_file(folder / "checkpoint", list);
    CHECK(contains(message_of([&] { open_checkpoint(folder.path()); }), unclear));
  }
  for (const char* list :
       {"model_checkpoint_path: \"b\"", "model_checkpoint_path: \"../../b\"\n"}) {
    test::write_file(folder / "checkpoint", list);
    const Checkpoint checkpoint = open_checkpoint(folder.path());
    CHECK(checkpoint.index_name() == "b.index");
    REQUIRE(checkpoint.notes().size() == 1);
    CHECK(checkpoint.notes()[0] ==
          "using 'b.index', which the file 'checkpoint' names (others ignored: 1)");
  }
}

TEST_CASE("of a SavedModel the checkpoint is named") {
  const test::TempFolder folder;
  copy_bundle("adam", folder, "variables/variables");
  CHECK(
      contains(message_of([&] { open_checkpoint(folder.path()); }),
               "is a SavedModel: give its checkpoint '" + (folder / "variables/variables") + "'"));
  CHECK(open_checkpoint(folder / "variables/variables").tensors().size() == 13);
}

TEST_CASE("what is no V2 checkpoint is explained") {
  const auto rule = [](const std::string& path) {
    const auto opened = open_checked(path);
    return std::get<Violation>(opened);
  };
  const Violation v1 = rule(MASQUE_TEST_DATA "/tensorflow/v1/model.ckpt");
  CHECK(v1.rule == "unsupported-format");
  CHECK(contains(v1.message, "a TensorFlow V1 checkpoint"));
  const test::TempFolder folder;
  test::write_file(folder / "v1.index",
                   test::read_file(MASQUE_TEST_DATA "/tensorflow/v1/model.ckpt"));
  CHECK(rule(folder / "v1.index").rule == "unsupported-format");
  test::write_file(folder / "old/model.ckpt-7",
                   test::read_file(MASQUE_TEST_DATA "/tensorflow/v1/model.ckpt"));
  test::write_file(folder / "old/model.ckpt-7.meta", "graph");
  CHECK(contains(message_of([&] { open_checkpoint(folder / "old"); }),
                 "old/model.ckpt-7: unsupported-format (byte 0): a TensorFlow V1 checkpoint"));
  CHECK(contains(rule(join(kGood, "checkpoint")).message, "give the folder or one of them"));
  copy_bundle("adam", folder, "m");
  test::write_file(folder / "m.index", "cut off");
  CHECK(rule(folder / "m").rule == "table-footer");
  CHECK(rule(folder / "m").file == folder / "m.index");
}

TEST_CASE("data files that are missing, short or long") {
  const test::TempFolder folder;
  copy_bundle("shards", folder, "m");
  const std::string second = folder / "m.data-00001-of-00002";
  const std::string data = test::read_file(second);
  test::write_file(second, data + "more");
  CHECK(open_checkpoint(folder / "m").notes() ==
        std::vector<std::string>{"m.data-00001-of-00002: 4 bytes belong to no tensor"});
  test::write_file(second, data.substr(0, data.size() - 1));
  const auto opened = open_checked(folder / "m");
  CHECK(std::get<Violation>(opened).rule == "bundle-bounds");
  REQUIRE(::unlink(second.c_str()) == 0);
  CHECK(contains(message_of([&] { open_checkpoint(folder / "m"); }), "m.data-00001-of-00002"));
}

TEST_CASE("an object graph has the names of variables") {
  const Checkpoint checkpoint = open_checkpoint(join(kGood, "keras"));
  const NamePlan plan = variable_names(checkpoint);
  const auto name_of = [&](const char* key) {
    const auto found = plan.names.find(key + std::string("/.ATTRIBUTES/VARIABLE_VALUE"));
    return found == plan.names.end() ? "" : found->second.name;
  };
  CHECK(name_of("step") == "my_step");
  CHECK(name_of("optimizer/_learning_rate") == "adam/learning_rate");
  CHECK(plan.names.size() == checkpoint.tensors().size());
  CHECK(plan.notes.size() == 1);
  CHECK(plan.left_out == std::vector<std::string>{"_CHECKPOINTABLE_OBJECT_GRAPH"});
  CHECK(contains(message_of([&] { variable_names(open_checkpoint(join(kGood, "adam"))); }),
                 "has no object graph"));
}

TEST_CASE("variables of one name keep their keys") {
  const auto variable = [](const char* name, const char* key) {
    return test::field(2, test::field(2, std::string(name)) + test::field(3, std::string(key)));
  };
  const std::string graph =
      test::field(1, variable("a", "k/a") + variable("b", "k/b")) +
      test::field(1, variable("b", "k/c") + variable("", "k/d") + variable("e", "k/e") +
                         variable("s", "k/s") + variable("b", "k/t"));
  REQUIRE(read_object_graph(graph).has_value());
  CHECK(read_object_graph(graph)->size() == 7);
  for (std::size_t end = 1; end < graph.size(); ++end) {
    const auto cut = read_object_graph(graph.substr(0, end));
    CHECK((!cut || cut->size() < 7));
  }
  const std::string text = test::varint(graph.size()) + "sums" + graph;
  const test::TempFolder folder;
  test::Rows rows = {{"_CHECKPOINTABLE_OBJECT_GRAPH",
                      test::bundle_entry({.type = 7, .shape = {}, .size = text.size()})}};
  for (const char* key : {"k/a", "k/b", "k/c", "k/d"})
    rows.emplace_back(key, test::bundle_entry({.shape = {0}, .size = 0}));
  constexpr std::uint64_t kComplex128 = 18;
  for (const char* key : {"k/s", "k/t"})
    rows.emplace_back(key, test::bundle_entry({.type = kComplex128, .shape = {0}, .size = 0}));
  test::write_file(folder / "m.index", test::make_index(rows));
  test::write_file(folder / "m.data-00000-of-00001", text);
  const NamePlan plan = variable_names(open_checkpoint(folder / "m"));
  REQUIRE(plan.names.size() == 2);
  CHECK(plan.names.at("k/a").name == "a");
  CHECK(plan.names.at("k/s").name == "s");
  CHECK(plan.notes == std::vector<std::string>{"4 tensors keep their keys: no unique variable name",
                                               "'_CHECKPOINTABLE_OBJECT_GRAPH' is left out"});
  CHECK(plan.left_out == std::vector<std::string>{"_CHECKPOINTABLE_OBJECT_GRAPH"});
  test::write_file(folder / "m.data-00000-of-00001", "x" + text.substr(1));
  CHECK(contains(message_of([&] { variable_names(open_checkpoint(folder / "m")); }),
                 "is not an object graph"));
}

TEST_CASE("names of data files") {
  CHECK(bundle_shard_name("m.ckpt", 3, 12) == "m.ckpt.data-00003-of-00012");
  CHECK(bundle_prefix_of("m.ckpt.data-00003-of-00012") == "m.ckpt");
  for (const char* name : {".data-00003-of-00012", "m.data-0003-of-00012", "m.data-00003-of-0001x",
                           "m.data-00003_of-00012", "data"})
    CHECK_FALSE(bundle_prefix_of(name).has_value());
}

}  // namespace
}  // namespace masque::store
