// Models that are split into several GGUF files: joined from any part, and refused with a part that
// is missing or of another model.
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file/in_place.hpp"
#include "store/checkpoint.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "support/make_gguf.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/convert/convert_checkpoint.hpp"
#include "surgery/names/rename_tensors.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::gguf_tensor;
using test::gguf_text;
using test::gguf_value;
using test::le;
using test::make_gguf;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

const std::string kModels = MASQUE_TEST_DATA "/gguf_model";

std::string part_name(int number) { return fmt::format("llama-{:05}-of-00003.gguf", number); }

void copy_parts(const TempFolder& folder) {
  for (int i = 1; i <= 3; ++i)
    write_file(folder / part_name(i), read_file(kModels + "/split/" + part_name(i)));
}

/// Part `number` (from 0) of `count`, with a tensor of its own.
std::string part(unsigned number, unsigned count, int tensors, const std::string& name,
                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> metadata{
      gguf_value("split.no", 2, le(static_cast<std::uint16_t>(number))),
      gguf_value("split.count", 2, le(static_cast<std::uint16_t>(count))),
      gguf_value("split.tensors.count", 5, le(tensors))};
  metadata.insert(metadata.end(), more.begin(), more.end());
  return make_gguf(metadata, {gguf_tensor(name, {4}, 0, 0)}, std::string(16, 'x'));
}

TEST_CASE("the parts of a model that the gguf package split are the model, from any part") {
  const Checkpoint whole = open_checkpoint(kModels + "/llama.gguf");
  for (const std::string& name : {part_name(1), part_name(2), part_name(3), std::string()}) {
    CAPTURE(name);
    const Checkpoint parts = open_checkpoint(kModels + "/split/" + name);
    CHECK(parts.files().size() == 3);
    CHECK(parts.files()[1].name == part_name(2));
    CHECK(parts.notes().empty());
    REQUIRE(parts.tensors().size() == whole.tensors().size());
    for (const TensorInfo& tensor : whole.tensors()) {
      const TensorInfo& other = parts.get(tensor.name);
      CHECK(other.shape == tensor.shape);
      CHECK(tensor_hash(parts, other, HashKind::kSha256) ==
            tensor_hash(whole, tensor, HashKind::kSha256));
    }
    const LockedFiles locked = lock_checkpoint(kModels + "/split/" + name, 1);
    CHECK(locked.files().size() == 3);
  }
}

TEST_CASE("a split model becomes one file, the one that it was") {
  const TempFolder folder;
  surgery::convert_checkpoint(kModels + "/split", folder / "whole.gguf", {});
  const Checkpoint joined = open_checkpoint(folder / "whole.gguf");
  CHECK(find_typed(joined.files()[0].content.typed, "split.count") == nullptr);
  const Checkpoint whole = open_checkpoint(kModels + "/llama.gguf");
  for (const TypedValue& value : whole.files()[0].content.typed) {
    CAPTURE(value.key);
    const TypedValue* found = find_typed(joined.files()[0].content.typed, value.key);
    REQUIRE(found != nullptr);
    CHECK(found->bytes == value.bytes);
  }
  CHECK(joined.tensors().size() == whole.tensors().size());
}

TEST_CASE("a part that is missing, cut or of another model is named") {
  const TempFolder folder;
  const auto why = [&] { return message_of([&] { open_checkpoint(folder / part_name(2)); }); };
  copy_parts(folder);
  CHECK(why() == "(nothing thrown)");
  std::filesystem::remove(folder / part_name(3));
  CHECK(contains(why(), part_name(3)));
  CHECK(contains(why(), "is not there, expected part 3 of 3"));
  copy_parts(folder);
  const std::string last = read_file(folder / part_name(3));
  for (std::size_t size = 0; size < last.size(); size += 97) {
    write_file(folder / part_name(3), last.substr(0, size));
    CHECK(contains(why(), part_name(3)));
  }
  write_file(folder / part_name(3), read_file(kModels + "/split/" + part_name(1)));
  CHECK(contains(why(), part_name(3)));
  write_file(folder / part_name(3), read_file(kModels + "/llama.gguf"));
  CHECK(contains(why(), part_name(3)));
  CHECK_FALSE(contains(why(), "nothing thrown"));
}

TEST_CASE("the metadata of parts fit each other and their names") {
  const TempFolder folder;
  const std::string first = folder / "m-00001-of-00002.gguf";
  const std::string second = folder / "m-00002-of-00002.gguf";
  const std::string llama = gguf_value("general.architecture", 8, gguf_text("llama"));
  const std::string bert = gguf_value("general.architecture", 8, gguf_text("bert"));
  const auto why = [&](const std::string& a, const std::string& b) {
    write_file(first, a);
    write_file(second, b);
    return message_of([&] { open_checkpoint(first); });
  };
  const std::string good = part(0, 2, 2, "a", {llama});
  CHECK(why(good, part(1, 2, 2, "b")) == "(nothing thrown)");
  CHECK(why(good, part(1, 2, 2, "b", {llama})) == "(nothing thrown)");
  CHECK(contains(why(good, part(0, 2, 2, "b")),
                 "m-00002-of-00002.gguf: the metadata say part 1 of 2 of a split model, expected "
                 "part 2 of 2"));
  CHECK(contains(why(good, part(1, 3, 2, "b")), "say part 2 of 3"));
  CHECK(contains(why(part(1, 2, 2, "a"), part(1, 2, 2, "b")),
                 "m-00001-of-00002.gguf: the metadata say part 2 of 2"));
  CHECK(contains(why(part(0, 60000, 2, "a"), part(1, 2, 2, "b")), "say part 1 of 60000"));
  CHECK(contains(why(good, part(1, 2, 3, "b")), "split.tensors.count is 3, expected 2"));
  CHECK(contains(why(good, part(1, 2, 2, "b", {bert})),
                 "general.architecture is bert, expected what the first part has: llama"));
  CHECK(contains(why(good, part(1, 2, 2, "a")), "index-duplicate-tensor"));
  CHECK(contains(why(part(0, 2, 1, "a"), make_gguf({}, {}, "")), "say that it is a whole model"));
  // A folder with other files is no choice.
  write_file(folder / "other.gguf", good);
  CHECK(contains(message_of([&] { open_checkpoint(folder.path()); }), "give the name of one"));
}

TEST_CASE("a part with another name stands alone, with a note, and runs nothing") {
  const TempFolder folder;
  write_file(folder / "renamed.gguf", part(1, 3, 7, "a"));
  const Checkpoint alone = open_checkpoint(folder / "renamed.gguf");
  REQUIRE(alone.notes().size() == 1);
  CHECK(contains(alone.notes()[0], "part 2 of 3 of a split model: the other parts are not read"));
}

TEST_CASE("the tensors of a split model keep their names") {
  const TempFolder folder;
  copy_parts(folder);
  const Checkpoint parts = open_checkpoint(folder / part_name(1));
  const auto why = message_of([&] {
    surgery::rename_tensors(parts, {{"output.weight", {"head.weight", false}}}, folder / "out.gguf",
                            {});
  });
  CHECK(contains(why, "a model split into 3 files, expected one file"));
}

}  // namespace
}  // namespace masque::store
