// Files of PyTorch read as what they are: dtypes, views, ties, nested state dicts, shards.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "store/values.hpp"
#include "support/make_torch.hpp"
#include "support/message.hpp"
#include "support/naive_json.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"
#include "support/torch_oracle.hpp"

namespace masque::store {
namespace {

const std::string kGood = MASQUE_TEST_DATA "/torch/good";
const std::string kBad = MASQUE_TEST_DATA "/torch/bad";

std::string unquote(const std::string& json) { return test::naive_json(json, 1).value().text; }

std::vector<std::string> good_files() {
  std::vector<std::string> names = test::names_in(kGood);
  std::erase_if(names, [](const std::string& name) {
    return !name.ends_with(".pt") && !name.ends_with(".legacy");
  });
  REQUIRE(names.size() >= 19);
  return names;
}

std::string sha256_of(const std::string& bytes) {
  const auto hasher = make_sha256();
  hasher->add(as_bytes(bytes));
  return hasher->digest();
}

TEST_CASE("files of PyTorch list their tensors with their values and ties") {
  const auto all = test::read_table(kGood + "/tensors.tsv", 6);
  std::size_t tensors = 0;
  std::size_t aliases = 0;
  for (const std::string& name : good_files()) {
    CAPTURE(name);
    auto rows = all;
    std::erase_if(rows, [&](const test::Row& row) { return row[0] != name; });
    const Checkpoint checkpoint = open_checkpoint(kGood + "/" + name);
    CHECK(checkpoint.files()[0].content.writer == "torch");
    REQUIRE(checkpoint.tensors().size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i, ++tensors) {
      const TensorInfo& tensor = checkpoint.tensors()[i];
      const test::Row& row = rows[i];
      CAPTURE(row[1]);
      CHECK(tensor.name == unquote(row[1]));
      CHECK(dtype_name(tensor.dtype) == row[2]);
      CHECK(shape_text(tensor.shape) == row[3]);
      CHECK(tensor.alias_of == unquote(row[4]));
      CHECK(sha256_of(bytes_of(checkpoint, tensor.name)) == row[5]);
      aliases += tensor.alias_of.empty() ? 0U : 1U;
    }
    CHECK(test::wrong_torch(test::read_file(kGood + "/" + name)) == "");
  }
  CHECK(tensors > 200);
  CHECK(aliases >= 8);
}

TEST_CASE("plain tensors need no reader") {
  for (const char* name : {"dtypes.pt", "dtypes.legacy", "module.pt", "parameters.legacy"}) {
    const Checkpoint checkpoint = open_checkpoint(kGood + "/" + name);
    for (const TensorInfo& tensor : checkpoint.tensors()) CHECK(tensor.reader == nullptr);
  }
  const Checkpoint views = open_checkpoint(kGood + "/views.pt");
  CHECK(views.get("base").reader == nullptr);
  CHECK(views.get("rows").reader == nullptr);
  CHECK(views.get("one-of-one").reader == nullptr);
  CHECK(views.get("transposed").reader != nullptr);
}

TEST_CASE("what is not read is mentioned") {
  const Checkpoint nested = open_checkpoint(kGood + "/nested.pt");
  REQUIRE(nested.notes().size() == 3);
  CHECK(nested.notes()[0] == "nested.pt: not tensors, left out: '_extra_state'");
  CHECK(nested.notes()[1] == "nested.pt: only the tensors of 'state_dict' are read");
  CHECK(nested.notes()[2] ==
        "nested.pt: other entries, left out: 'epoch', 'lr', 'seed', 'optimizer', 'device' and 2 "
        "more");
  CHECK(open_checkpoint(kGood + "/module.pt").notes().empty());
}

TEST_CASE("the state dict is found under its usual keys next to counters and losses") {
  for (const char* key : {"state_dict", "model", "model_state_dict", "module", "net", "ema"}) {
    CAPTURE(key);
    const test::TempFolder folder;
    const std::string storage = test::pickled_storage(6);
    const auto entry = [](const std::string& name, const std::string& value) {
      return test::pickled_text(name) + value + "s";
    };
    const std::string state = "}" + entry("a", test::pickled_tensor(storage, 0, {2}, {1})) +
                              entry("b", test::pickled_tensor(storage, 2, {2, 2}, {2, 1}));
    const std::string top = "}" + entry("epoch", "K\x03") + entry(key, state) +
                            entry("best_loss", test::pickled_tensor(storage, 0, {}, {}));
    test::write_file(folder / "f.pt", test::torch_zip(test::pickled(top)));
    const Checkpoint checkpoint = open_checkpoint(folder / "f.pt");
    REQUIRE(checkpoint.tensors().size() == 2);
    CHECK(checkpoint.tensors()[1].name == "b");
    CHECK(checkpoint.notes() ==
          std::vector<std::string>{fmt::format("f.pt: only the tensors of '{}' are read", key),
                                   "f.pt: other entries, left out: 'epoch', 'best_loss'"});
  }
}

TEST_CASE("what training programs save with a model is passed over") {
  for (const char* name : {"training.pt", "training.legacy"}) {
    const Checkpoint training = open_checkpoint(kGood + "/" + name);
    CHECK(training.tensors().size() == 2);
    REQUIRE(training.notes().size() == 2);
    CHECK(test::contains(training.notes()[1], "left out: 'args', 'best', 'rng', 'train', 'step'"));
  }
}

TEST_CASE("shards of PyTorch are found by their index") {
  const Checkpoint sharded = open_checkpoint(kGood + "/sharded");
  CHECK(sharded.files().size() == 2);
  CHECK(sharded.notes().empty());
  const Checkpoint views = open_checkpoint(kGood + "/views.pt");
  for (const TensorInfo& tensor : views.tensors())
    CHECK(bytes_of(sharded, tensor.name) == bytes_of(views, tensor.name));
  CHECK(sharded.find("parameter") != nullptr);
}

TEST_CASE("what torch.save writes and is no state dict is refused by its rule") {
  for (const test::Row& row : test::read_table(kBad + "/rules.tsv", 2)) {
    CAPTURE(row[0]);
    const auto opened = open_checked(kBad + "/" + row[0]);
    const auto* violation = std::get_if<Violation>(&opened);
    REQUIRE(violation != nullptr);
    CHECK(violation->rule == row[1]);
  }
  CHECK(test::contains(test::message_of([] { open_checkpoint(kBad + "/module.pt"); }),
                       "save model.state_dict() instead"));
}

TEST_CASE("a file cut anywhere is refused") {
  for (const char* name : {"parameters.pt", "old.pt", "ties.legacy", "storage-views.legacy"}) {
    const std::string file = test::read_file(kGood + "/" + name);
    for (std::size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      const InputFile input = test::MemoryFile(file.substr(0, size)).open();
      REQUIRE(std::holds_alternative<Violation>(read_weights(input)));
    }
  }
}

/// Names, types, shapes, ties and places.
std::string outline(const FileContent& content) {
  std::string out;
  for (const TensorInfo& tensor : content.tensors) {
    out += tensor.name + '|' + std::string(dtype_name(tensor.dtype)) + shape_text(tensor.shape) +
           tensor.alias_of + '@' + std::to_string(tensor.begin) + '\n';
  }
  return out;
}

TEST_CASE("any bit of a zip file flipped is refused or changes no more than elements") {
  for (const char* name : {"parameters.pt", "ties.pt", "big-endian.pt"}) {
    const std::string file = test::read_file(kGood + "/" + name);
    const auto before = read_weights(test::MemoryFile(file).open());
    const std::string expected = outline(std::get<FileContent>(before));
    std::size_t same = 0;
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      std::string flipped = file;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      const auto after = read_weights(test::MemoryFile(flipped).open());
      if (std::holds_alternative<Violation>(after)) continue;
      ++same;
      if (outline(std::get<FileContent>(after)) != expected)
        FAIL_CHECK(name, " byte ", bit / 8, " bit ", bit % 8);
    }
    CHECK(same > 300);  // elements, padding, times
    CHECK(same < 8 * file.size() * 6 / 10);
  }
}

TEST_CASE("any bit of a legacy file flipped is refused or gives tensors that lie inside") {
  for (const char* name : {"ties.legacy", "storage-views.legacy", "parameters.legacy"}) {
    const std::string file = test::read_file(kGood + "/" + name);
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      std::string flipped = file;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      const std::string wrong = test::wrong_torch(flipped);
      if (!wrong.empty()) FAIL_CHECK(name, " byte ", bit / 8, " bit ", bit % 8, ": ", wrong);
    }
  }
}

}  // namespace
}  // namespace masque::store
