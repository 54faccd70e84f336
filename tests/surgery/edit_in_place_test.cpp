#include "surgery/edit/edit_in_place.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include <doctest/doctest.h>

#include "store/inspect/compare_checkpoints.hpp"
#include "support/faults.hpp"
#include "support/make_torch.hpp"
#include "support/message.hpp"
#include "support/near.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::far_off;
using test::Faults;
using test::message_of;
using test::names_in;
using test::number;
using test::pickled;
using test::pickled_dict;
using test::pickled_storage;
using test::pickled_tensor;
using test::pickled_text;
using test::read_file;
using test::TempFolder;
using test::torch_zip;
using test::write_file;

CorrectionRequest in_place_request(bool in_place = true) {
  CorrectionRequest request;
  request.in_place = in_place;
  request.tied = TiedPolicy::kKeep;
  request.verify = true;
  request.write.threads = 2;
  return request;
}

ino_t inode_of(const std::string& path) {
  struct stat info = {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

bool same_in_place(const std::string& a, const std::string& b) {
  return store::compare_checkpoints(store::open_checkpoint(a), store::open_checkpoint(b), {})
      .empty();
}

std::optional<std::string> marker_of(const std::string& path) {
  return store::find_marker(store::open_checkpoint(path), kTable, kMlmMarkerKey);
}

TEST_CASE("in place gives what an output would be, in the same file") {
  const TempFolder folder;
  ExampleBert().write(folder);
  correct_checkpoint(folder / "in", folder / "out", in_place_request(false));
  const std::string weights = folder / "in/model.safetensors";
  const ino_t inode = inode_of(weights);
  const std::string header = read_file(weights).substr(0, 100);
  const auto report = correct_checkpoint(folder / "in", "", in_place_request());
  CHECK(same_in_place(folder / "in", folder / "out"));
  CHECK(inode_of(weights) == inode);
  CHECK(read_file(weights).substr(0, 100) == header);
  REQUIRE(report.verified);
  CHECK(report.verified->tensors_unchanged == 2);
  CHECK(report.verified->digest_before == report.verified->digest_after);
  CHECK(names_in(folder / "in") ==
        std::vector<std::string>{"config.json", "model.safetensors", "vocab.txt"});
  // The mark is in config.json, so that it is found by the folder and by the file in it.
  CHECK(marker_of(folder / "in") == marker_of(folder / "out"));
  CHECK(contains(read_file(folder / "in/config.json"), "\"masque.mlm_correct\": \"rate=0.15 "));
  for (const char* again : {"in", "in/model.safetensors"}) {
    CHECK(contains(message_of([&] { correct_checkpoint(folder / again, "", in_place_request()); }),
                   "is already corrected"));
  }
}

TEST_CASE("a lone file has its mark next to it, and gets it back by the inverse") {
  const TempFolder folder;
  ExampleBert bert;
  bert.dtype = DType::kF64;
  bert.write(folder);
  std::filesystem::rename(folder / "in/model.safetensors", folder / "x.safetensors");
  const auto before = values_of(store::open_checkpoint(folder / "x.safetensors"), kTable);
  CorrectionRequest request = in_place_request();
  request.mask_token = "4";
  correct_checkpoint(folder / "x.safetensors", "", request);
  CHECK(folder.names() ==
        std::vector<std::string>{"in", "x.safetensors", "x.safetensors.masque.json"});
  CHECK(marker_of(folder / "x.safetensors"));
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "x.safetensors", "", request); }),
                 "is already corrected"));
  CorrectionRequest inverse = in_place_request();
  inverse.inverse = true;
  correct_checkpoint(folder / "x.safetensors", "", inverse);
  CHECK_FALSE(marker_of(folder / "x.safetensors"));
  CHECK(far_off(values_of(store::open_checkpoint(folder / "x.safetensors"), kTable), before, 1e-15,
                1e-14) == "");
}

TEST_CASE(
    "a mark moves: from the header next to the file, and from there into an output's header") {
  const TempFolder folder;
  ExampleBert().write(folder);
  correct_checkpoint(folder / "in", folder / "out", in_place_request(false));
  const std::string weights = folder / "out/model.safetensors";
  REQUIRE(contains(read_file(weights), "masque.mlm_correct"));
  const std::size_t size = read_file(weights).size();
  CorrectionRequest again = in_place_request();
  again.again = true;
  correct_checkpoint(folder / "out", "", again);
  CHECK(read_file(weights).size() == size);
  CHECK_FALSE(contains(read_file(weights), "masque.mlm_correct"));
  const auto both = marker_of(folder / "out");
  REQUIRE(both);
  CHECK(contains(*both, "; rate="));
  again.in_place = false;
  again.inverse = true;
  correct_checkpoint(folder / "out", folder / "once", again);
  CHECK(marker_of(folder / "once") == both->substr(0, both->find(';')));
  CHECK(contains(read_file(folder / "once/model.safetensors"), "masque.mlm_correct"));
  CHECK_FALSE(contains(read_file(folder / "once/config.json"), "masque"));
}

TEST_CASE("a tied head is not untied in place, and what was refused changes nothing") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const std::string before = read_file(folder / "in/model.safetensors");
  CorrectionRequest request = in_place_request();
  for (const auto policy : {std::optional<TiedPolicy>(), std::optional(TiedPolicy::kUntie)}) {
    request.tied = policy;
    CHECK(
        contains(message_of([&] { correct_checkpoint(folder / "in", "", request); }), "tied keep"));
  }
  CHECK(read_file(folder / "in/model.safetensors") == before);
  CHECK(names_in(folder / "in").size() == 3);
}

TEST_CASE("a checkpoint without a head needs no --tied") {
  const TempFolder folder;
  ExampleBert bert;
  bert.head = false;
  bert.config = R"({"model_type": "bert", "architectures": ["BertModel"]})";
  bert.write(folder);
  CorrectionRequest request = in_place_request();
  request.tied.reset();
  CHECK_NOTHROW(correct_checkpoint(folder / "in", "", request));
  CHECK(marker_of(folder / "in"));
}

TEST_CASE("of shards only the one with the table changes") {
  const TempFolder folder;
  ExampleBert bert;
  bert.write(folder, "one");
  bert.write_shards(folder, "two");
  const std::string first = "model-00001-of-00002.safetensors";
  const std::string index = R"({"weight_map": {"cls.predictions.bias": ")" + first +
                            R"(", "other": ")" + first + R"(", ")" + kTable +
                            R"(": "model-00002-of-00002.safetensors"}})";
  write_file(folder / "two/model.safetensors.index.json", index);
  const std::string before = read_file(folder / ("two/" + first));
  correct_checkpoint(folder / "one", "", in_place_request());
  correct_checkpoint(folder / "two", "", in_place_request());
  CHECK(same_in_place(folder / "one", folder / "two"));
  CHECK(read_file(folder / ("two/" + first)) == before);
  // Without a config.json the mark is next to the shard.
  CHECK(std::filesystem::exists(folder / "two/model-00002-of-00002.safetensors.masque.json"));
  CHECK(marker_of(folder / "two") == marker_of(folder / "one"));
  // As an output the mark is in the header again, and gone from next to it.
  CorrectionRequest inverse = in_place_request(false);
  inverse.inverse = true;
  correct_checkpoint(folder / "two", folder / "back", inverse);
  CHECK_FALSE(marker_of(folder / "back"));
}

TEST_CASE("an overflow, a full disk, rate 0: the file is as it was") {
  const TempFolder folder;
  ExampleBert bert;
  bert.dtype = DType::kF16;
  auto tensors = bert.tensors();
  tensors[0].values[30] = 60000;
  write_file(folder / "in/model.safetensors", example_file(tensors));
  write_file(folder / "in/vocab.txt", bert.vocabulary);
  const std::string before = read_file(folder / "in/model.safetensors");
  CorrectionRequest request = in_place_request();
  request.inverse = true;
  request.again = true;
  request.rate = 0.5;
  CHECK(contains(message_of([&] { correct_checkpoint(folder / "in", "", request); }),
                 "row 6 would overflow F16"));
  request.inverse = false;
  {
    const Faults faults([](os::Call call, std::string_view path, std::size_t) {
      return call == os::Call::kOpen && path.find("undo") != std::string_view::npos
                 ? std::optional(os::Fault{.error = ENOSPC})
                 : std::nullopt;
    });
    CHECK(contains(message_of([&] { correct_checkpoint(folder / "in", "", request); }),
                   "No space left on device"));
  }
  request.rate = 0;
  CHECK_NOTHROW(correct_checkpoint(folder / "in", "", request));
  CHECK(read_file(folder / "in/model.safetensors") == before);
  CHECK(names_in(folder / "in") == std::vector<std::string>{"model.safetensors", "vocab.txt"});
}

TEST_CASE("an edit says what stands against making it in place") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
  const auto edited = [&](auto change) {
    CheckpointEdit edit(checkpoint);
    change(edit);
    CHECK(edit.keeps_layout() == !edit.against_in_place());
    return edit.against_in_place().value_or("");
  };
  const store::Source bytes = store::Literal{std::string(12, 'x')};
  CHECK(edited([&](auto& edit) { edit.replace("other", {3}, bytes); }) == "");
  CHECK(edited([&](auto& edit) { edit.set_config("vocab_size", "3"); }) == "");
  CHECK(edited([&](auto& edit) {
          edit.replace("other", {1, 3}, bytes);
        }) == "tensor 'other' would change its size");
  CHECK(edited([&](auto& edit) { edit.remove("other"); }) == "tensor 'other' would be removed");
  CHECK(edited([&](auto& edit) { edit.drop_file("vocab.txt"); }) == "'vocab.txt' would be removed");
  CHECK(edited([&](auto& edit) {
          edit.add({{.name = "new", .dtype = DType::kU8, .shape = {12}}, bytes}, "other");
        }) == "tensor 'new' would be added");
}

TEST_CASE("sources may read what is written over: all is computed from the old bytes") {
  const TempFolder folder;
  write_file(folder / "f.safetensors", example_file({{"a", DType::kF32, {3}, {1, 2, 3}},
                                                     {"b", DType::kF32, {3}, {4, 5, 6}}}));
  const LockedFiles locked = store::lock_checkpoint(folder / "f.safetensors", 0);
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "f.safetensors");
  CheckpointEdit edit(checkpoint);
  const auto other = [&](const std::string& name) {
    return store::source_of(checkpoint.files()[0].file, checkpoint.get(name));
  };
  edit.replace("a", {3}, other("b"));
  edit.replace("b", {3}, other("a"));
  const InPlaceResult result = write_in_place(edit, locked, {});
  CHECK(result.bytes == 24);
  const store::Checkpoint after = store::open_checkpoint(folder / "f.safetensors");
  CHECK(values_of(after, "a") == std::vector<double>{4, 5, 6});
  CHECK(values_of(after, "b") == std::vector<double>{1, 2, 3});
}

TEST_CASE("an edit that changes nothing is verified, too") {
  const TempFolder folder;
  write_file(folder / "f.safetensors",
             example_file({{"a", DType::kF32, {3}, {1, 2, 3}}, {"b", DType::kF32, {1}, {4}}}));
  const LockedFiles locked = store::lock_checkpoint(folder / "f.safetensors", 0);
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "f.safetensors");
  CheckpointEdit edit(checkpoint);
  edit.replace("a", {3}, store::source_of(checkpoint.files()[0].file, checkpoint.get("a")));
  const InPlaceResult result = write_in_place(edit, locked, {.verify = true});
  CHECK(result.bytes == 0);
  REQUIRE(result.verified.has_value());
  CHECK(result.verified->tensors_unchanged == 1);
}

/// Writes 40 or fewer new bytes over a tensor of a copy of a golden file of PyTorch.
std::string changed_in_place(const std::string& golden, const std::string& tensor) {
  const TempFolder folder;
  const std::string path = folder / "f.pt";
  write_file(path, read_file(MASQUE_TEST_DATA "/torch/good/" + golden));
  return message_of([&] {
    {
      const LockedFiles locked = store::lock_checkpoint(path, 0);
      const store::Checkpoint checkpoint = store::open_checkpoint(path);
      CheckpointEdit edit(checkpoint);
      const store::TensorInfo& info = checkpoint.get(tensor);
      edit.replace(tensor, info.shape, store::Literal{std::string(info.bytes(), '\x41')});
      write_in_place(edit, locked, {});
    }
    const store::Checkpoint after = store::open_checkpoint(path);
    CHECK(values_of(after, tensor).at(0) == 12.078431129455566);
    CHECK_FALSE(store::check_sums(after.files()[0].file, after.files()[0].content).has_value());
  });
}

TEST_CASE("files of PyTorch change in place, but no elements that views share") {
  CHECK(changed_in_place("dtypes.pt", "float32") == "(nothing thrown)");
  CHECK(changed_in_place("dtypes.legacy", "float32") == "(nothing thrown)");
  for (const char* name : {"views.pt", "views.legacy"}) {
    CHECK(contains(changed_in_place(name, "rows"), "shares its bytes with"));
    CHECK(contains(changed_in_place(name, "one"), "shares its bytes with"));
    CHECK(contains(changed_in_place(name, "transposed"), "is not stored contiguously"));
  }
  CHECK(contains(changed_in_place("ties.pt", "embedding"), "shares its bytes with"));
}

TEST_CASE("what optimizer states and other dicts share does not change in place") {
  const std::string storage = pickled_storage(6);
  const auto change = [&](const std::string& optimizer) {
    const TempFolder folder;
    const std::string path = folder / "f.pt";
    const std::string model = pickled_dict("a", pickled_tensor(storage, 0, {3}, {1}));
    write_file(path, torch_zip(pickled("}" + pickled_text("model") + model + "s" +
                                       pickled_text("epoch") + "K" + number(3, 1) + "s" +
                                       pickled_text("optimizer") + optimizer + "s")));
    return message_of([&] {
      const LockedFiles locked = store::lock_checkpoint(path, 0);
      const store::Checkpoint checkpoint = store::open_checkpoint(path);
      CheckpointEdit edit(checkpoint);
      edit.replace("a", {3}, store::Literal{std::string(12, '\x41')});
      write_in_place(edit, locked, {});
    });
  };
  const auto momentum = [&](std::uint64_t offset) {
    return pickled_dict("state", "]" + pickled_tensor(storage, offset, {2}, {1}) + "a");
  };
  CHECK(
      contains(change(momentum(2)), "tensor 'a' shares its bytes with a tensor outside the state"));
  CHECK(change(momentum(3)) == "(nothing thrown)");
}

}  // namespace
}  // namespace masque::surgery
