// Two checkpoints side by side, and one number for a whole one.
#include "store/inspect/compare_checkpoints.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/family_names.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::make_safetensors;
using test::message_of;
using test::SmallTensor;
using test::TempFolder;
using test::write_file;

using Names = std::vector<std::string>;

struct Files {
  Checkpoint open(const std::string& name, const std::vector<SmallTensor>& tensors,
                  const std::string& metadata = {}) const {
    write_file(folder / (name + ".safetensors"), make_safetensors(tensors, metadata));
    return open_checkpoint(folder / (name + ".safetensors"));
  }
  /// One tensor a shard, with an index.
  Checkpoint shards(const std::string& name, const std::vector<SmallTensor>& tensors) const {
    std::string map;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      write_file(folder / fmt::format("{}/{}.safetensors", name, i),
                 make_safetensors({tensors[i]}, R"({"shard":"yes"})"));
      map += fmt::format("{}\"{}\": \"{}.safetensors\"", i == 0 ? "" : ",", tensors[i].name, i);
    }
    write_file(folder / (name + "/model.safetensors.index.json"),
               "{\"weight_map\": {" + map + "}}");
    return open_checkpoint(folder / name);
  }
  TempFolder folder;
};

/// "only-a name", "values name", …
Names changes(const Checkpoint& a, const Checkpoint& b, Tolerance tolerance = {}) {
  Names out;
  CompareOptions options;
  options.tolerance = tolerance;
  for (const TensorChange& change : compare_checkpoints(a, b, options)) {
    out.push_back(fmt::format("{} {}", change_name(change.kind), change.name));
  }
  return out;
}

const std::vector<SmallTensor> kTensors = {{"w", "F32", {2, 2}, raw<float>({1, 2, 3, 4})},
                                           {"b", "F32", {2}, raw<float>({5, 6})},
                                           {"ids", "I64", {2}, raw<std::int64_t>({7, 8})},
                                           {"none", "F16", {0}, ""},
                                           {"scalar", "F64", {}, raw<double>({9})}};

TEST_CASE("a checkpoint equals itself in another order, in shards and with other metadata") {
  const Files files;
  auto reversed = kTensors;
  std::reverse(reversed.begin(), reversed.end());
  const Checkpoint a = files.open("a", kTensors);
  CHECK(changes(a, a).empty());
  CHECK(changes(a, files.open("b", reversed, R"({"k":"v"})")).empty());
  CHECK(changes(a, files.shards("c", kTensors)).empty());
  CHECK(changes(files.shards("d", reversed), a).empty());
}

TEST_CASE("every kind of change is named, sorted by name, with both sides") {
  const Files files;
  const Checkpoint a = files.open("a", {{"both", "F32", {2}, raw<float>({1, 2})},
                                        {"dtype", "F32", {2}, raw<float>({1, 2})},
                                        {"gone", "U8", {1}, "x"},
                                        {"shape", "F32", {2}, raw<float>({1, 2})},
                                        {"values", "F32", {2}, raw<float>({1, 2})},
                                        {"Zoo", "U8", {1}, "x"}});
  const Checkpoint b = files.open("b", {{"both", "F32", {2}, raw<float>({1, 2})},
                                        {"dtype", "F64", {2}, raw<double>({1, 2.5})},
                                        {"new", "U8", {1}, "x"},
                                        {"shape", "F32", {1, 2}, raw<float>({1, 2})},
                                        {"values", "F32", {2}, raw<float>({1, 3})}});
  CHECK(changes(a, b) == Names{"only-a Zoo", "dtype dtype", "only-a gone", "only-b new",
                               "shape shape", "values values"});
  CHECK(changes(b, a) == Names{"only-b Zoo", "dtype dtype", "only-b gone", "only-a new",
                               "shape shape", "values values"});
  const auto found = compare_checkpoints(a, b, {});
  REQUIRE(found.size() == 6);
  CHECK((found[0].a == a.find("Zoo") && found[0].b == nullptr));
  CHECK((found[3].a == nullptr && found[3].b == b.find("new")));
  CHECK((found[4].a == a.find("shape") && found[4].b == b.find("shape")));
  CHECK(found[1].diff.count == 1);
  CHECK(found[1].diff.first == 1);
  CHECK(found[1].diff.max_absolute == 0.5);
  CHECK(found[5].diff.count == 1);
  CHECK(found[5].diff.max_relative == 1.0 / 3);
}

TEST_CASE("another type is a change even where the values are the same") {
  const Files files;
  const Checkpoint a = files.open("a", {{"x", "F32", {2}, raw<float>({1, 2})}});
  const Checkpoint b = files.open("b", {{"x", "F64", {2}, raw<double>({1, 2})}});
  CHECK(changes(a, b) == Names{"dtype x"});
  CHECK(changes(a, b, {1, 1}) == Names{"dtype x"});
  CHECK(compare_checkpoints(a, b, {})[0].diff.count == 0);
}

TEST_CASE("a tolerance forgives values and nothing else") {
  const Files files;
  const Checkpoint a = files.open(
      "a", {{"x", "F32", {2}, raw<float>({1, 2})}, {"y", "F32", {2}, raw<float>({1, 2})}});
  const Checkpoint b = files.open(
      "b", {{"x", "F32", {2}, raw<float>({1.25F, 2})}, {"y", "F32", {2, 1}, raw<float>({1, 2})}});
  CHECK(changes(a, b) == Names{"values x", "shape y"});
  CHECK(changes(a, b, {0.2, 0}) == Names{"values x", "shape y"});
  CHECK(changes(a, b, {0.25, 0}) == Names{"shape y"});
  CHECK(changes(a, b, {0, 0.2}) == Names{"shape y"});
}

TEST_CASE("changes do not depend on the number of threads") {
  const Files files;
  const auto values = normal_values(1, 200000, 1);
  auto other = values;
  other[150000] += 1;
  const Checkpoint a = files.open("a", {{"x", "F64", {200000}, raw(values)}});
  const Checkpoint b = files.open("b", {{"x", "F64", {200000}, raw(other)}});
  for (const int threads : {1, 2, 9}) {
    CompareOptions options;
    options.threads = threads;
    const auto found = compare_checkpoints(a, b, options);
    REQUIRE(found.size() == 1);
    CHECK(found[0].diff.first == 150000);
  }
}

// sha256sum of the bytes of 1.0 and 2.0 as F32:
//   printf '\0\0\200\77\0\0\0\100' | sha256sum
//     b9c80b5a… = kHandHash
// and of the one line that stands for the tensor:
//   printf '"a"\tF32\t[2]\t%s\n' b9c80b5a… | sha256sum
//     kHandTotal
constexpr const char* kHandHash =
    "b9c80b5adeca450753a16950c3cc655d271f7bef7a485bc83f112b72fef21d37";
constexpr const char* kHandTotal =
    "d2b507be1eb502a905efb2c20c91ffe7528d1aa3760d6d58d2b4969589c99beb";

TEST_CASE("the total hash is that of sha256sum over one line a tensor") {
  const Files files;
  const Checkpoint a = files.open("a", {{"a", "F32", {2}, raw<float>({1, 2})}});
  const CheckpointHash hash = hash_checkpoint(a, HashKind::kSha256, 1, {});
  CHECK(hash.tensors == Names{kHandHash});
  CHECK(hash.total == kHandTotal);
}

TEST_CASE("the total hash knows no order, shards, metadata and threads") {
  const Files files;
  auto reversed = kTensors;
  std::reverse(reversed.begin(), reversed.end());
  for (const HashKind kind : {HashKind::kSha256, HashKind::kXxh3}) {
    const auto total = [&](const Checkpoint& checkpoint, int threads) {
      return hash_checkpoint(checkpoint, kind, threads, {}).total;
    };
    const std::string expected = total(files.open("a", kTensors), 1);
    CHECK(expected.size() == (kind == HashKind::kSha256 ? 64 : 32));
    CHECK(total(files.open("b", reversed), 3) == expected);
    CHECK(total(files.open("c", kTensors, R"({"k":"v"})"), 2) == expected);
    CHECK(total(files.shards("d", reversed), 8) == expected);
  }
}

TEST_CASE("the total hash changes with a name, a type, a shape, a bit and a tensor") {
  const Files files;
  std::vector<std::string> totals;
  const auto add = [&](const std::vector<SmallTensor>& tensors) {
    totals.push_back(hash_checkpoint(files.open(fmt::format("{}", totals.size()), tensors),
                                     HashKind::kXxh3, 2, {})
                         .total);
  };
  add(kTensors);
  for (const auto& change : std::vector<std::function<void(std::vector<SmallTensor>&)>>{
           [](auto& t) { t[1].name += 'B'; }, [](auto& t) { t[1].dtype[0] = 'I'; },
           [](auto& t) { t[0].shape = {4}; }, [](auto& t) { t[0].bytes[0] ^= 1; },
           [](auto& t) { t.pop_back(); }, [](auto& t) { t.erase(t.begin() + 3); },
           [](auto& t) { std::swap(t[0].name, t[1].name); }}) {
    auto tensors = kTensors;
    change(tensors);
    add(tensors);
  }
  std::sort(totals.begin(), totals.end());
  CHECK(std::unique(totals.begin(), totals.end()) == totals.end());
}

TEST_CASE("hashes of tensors stand in the checkpoint's order") {
  const Files files;
  const Checkpoint a = files.open("a", kTensors);
  const auto hash = hash_checkpoint(a, HashKind::kXxh3, 4, {});
  REQUIRE(hash.tensors.size() == a.tensors().size());
  for (std::size_t i = 0; i < hash.tensors.size(); ++i) {
    CHECK(hash.tensors[i] == tensor_hash(a, a.tensors()[i], HashKind::kXxh3));
  }
}

TEST_CASE("progress ends at the whole") {
  const Files files;
  const Checkpoint a = files.open("a", kTensors);
  std::atomic<std::uint64_t> last{0};
  std::atomic<std::uint64_t> whole{0};
  const ProgressFunction progress = [&](std::uint64_t done, std::uint64_t total) {
    last = std::max<std::uint64_t>(last, done);
    whole = total;
  };
  hash_checkpoint(a, HashKind::kXxh3, 2, progress);
  CHECK(last == a.tensor_bytes());
  CHECK(whole == a.tensor_bytes());
  last = whole = 0;
  CompareOptions options;
  options.progress = progress;
  compare_checkpoints(a, files.open("b", kTensors), options);
  CHECK(last == a.tensor_bytes());
  CHECK(whole == a.tensor_bytes());
}

TEST_CASE("by family names a tensor is found with and without prefix, by old and new spelling") {
  const Files files;
  const Checkpoint a = files.open("a", {{"bert.embeddings.LayerNorm.gamma", "U8", {1}, "x"},
                                        {"cls.predictions.bias", "U8", {1}, "y"}});
  const Checkpoint b = files.open("b", {{"embeddings.LayerNorm.weight", "U8", {1}, "x"},
                                        {"cls.predictions.bias", "U8", {1}, "z"}});
  CHECK(changes(a, b) == Names{"only-a bert.embeddings.LayerNorm.gamma",
                               "values cls.predictions.bias",
                               "only-b embeddings.LayerNorm.weight"});
  CompareOptions options;
  options.canonical = model::canonical_name;
  const auto found = compare_checkpoints(a, b, options);
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "cls.predictions.bias");
  const Checkpoint twice =
      files.open("c", {{"bert.pooler.w", "U8", {1}, "x"}, {"pooler.w", "U8", {1}, "x"}});
  CHECK(contains(message_of([&] { compare_checkpoints(a, twice, options); }),
                 "tensors 'bert.pooler.w' and 'pooler.w' are both 'pooler.w'"));
  CHECK(changes(twice, twice).empty());
}

/// Two numbers of a tensor of doubles.
std::pair<double, double> golden_pair(const Checkpoint& checkpoint, const std::string& name) {
  std::array<double, 2> out{};
  checkpoint.read(checkpoint.get(name), 0, std::as_writable_bytes(std::span(out)));
  return {out[0], out[1]};
}

TEST_CASE("a quantised copy in llama.cpp's layout has the errors that NumPy computes") {
  const std::string folder = MASQUE_TEST_DATA "/quantised/";
  const Checkpoint source = open_checkpoint(folder + "source");
  CompareOptions options;
  options.canonical = model::canonical_name;
  options.as_transformers = true;
  for (const auto& [name, type] : {std::pair("q8_0", "Q8_0"), {"q4_0", "Q4_0"}}) {
    CAPTURE(name);
    const Checkpoint copy = open_checkpoint(folder + name + ".gguf");
    const Checkpoint golden = open_checkpoint(folder + name + ".errors.safetensors");
    std::size_t matrices = 0;
    // The vectors are the same: norms, as F32 in both.
    for (const TensorChange& change : compare_checkpoints(source, copy, options)) {
      CAPTURE(change.name);
      ++matrices;
      CHECK(change.kind == ChangeKind::kDtype);
      CHECK(change.type_a == "F32");
      CHECK(change.type_b == type);
      REQUIRE((change.a != nullptr && change.b != nullptr));
      CHECK(change.a->shape == change.b->shape);
      CHECK(change.diff.count > 0);
      const auto [error, cosine] = golden_pair(golden, change.a->name);
      CHECK(error > 0.001);
      CHECK(change.diff.relative_error == doctest::Approx(error).epsilon(1e-12));
      CHECK(change.diff.cosine == doctest::Approx(cosine).epsilon(1e-14));
    }
    CHECK(matrices == 16);
    // Of itself nothing differs, decoded or not.
    CHECK(compare_checkpoints(copy, copy, options).empty());
    CHECK(compare_checkpoints(copy, copy, {}).empty());
  }
  // Without the names of transformers nothing is in both.
  for (const TensorChange& change :
       compare_checkpoints(source, open_checkpoint(folder + "q8_0.gguf"), {}))
    CHECK((change.a == nullptr || change.b == nullptr));
}

TEST_CASE("matrices that llama.cpp keeps the other way round are turned") {
  const std::string path = MASQUE_TEST_DATA "/gguf_model/gpt2.gguf";
  const Checkpoint gpt2 = open_checkpoint(path);
  CompareOptions options;
  options.as_transformers = true;
  const Files files;
  // The first matrix of the attention, as transformers has it: (32, 96).
  const std::string own = "blk.0.attn_qkv.weight";
  const TensorInfo& stored = gpt2.get(own);
  REQUIRE(stored.shape == Shape{96, 32});
  std::vector<float> values(96 * 32);
  gpt2.read(stored, 0, std::as_writable_bytes(std::span(values)));
  std::vector<float> turned(values.size());
  for (std::size_t i = 0; i < 96; ++i) {
    for (std::size_t j = 0; j < 32; ++j) turned[j * 96 + i] = values[i * 32 + j];
  }
  const std::string name = "transformer.h.0.attn.c_attn.weight";
  for (const bool changed : {false, true}) {
    if (changed) turned[5] += 1;
    const Checkpoint other =
        files.open(changed ? "b" : "a", {{name, "F32", {32, 96}, raw(turned)}});
    for (const TensorChange& change : compare_checkpoints(gpt2, other, options)) {
      if (change.name != name) {
        CHECK(change.kind == ChangeKind::kOnlyA);
        continue;
      }
      CHECK(changed);
      CHECK(change.kind == ChangeKind::kValues);
      CHECK(change.diff.count == 1);
      CHECK(change.diff.first == 5);
    }
  }
}

TEST_CASE("relative error and cosine of a tensor by hand") {
  const Files files;
  const auto diff = [&](const std::string& type, const std::string& left,
                        const std::string& right) {
    const auto found = compare_checkpoints(files.open("a", {{"x", type, {2}, left}}),
                                           files.open("b", {{"x", type, {2}, right}}), {});
    REQUIRE(found.size() == 1);
    return found[0].diff;
  };
  const TensorDiff some = diff("F32", raw<float>({3, 4}), raw<float>({3, 2}));
  CHECK(some.relative_error == doctest::Approx(2.0 / 5).epsilon(1e-15));
  CHECK(some.cosine == doctest::Approx(17 / (5 * std::sqrt(13.0))).epsilon(1e-15));
  const TensorDiff zeros = diff("F64", raw<double>({0, 0}), raw<double>({0, 1}));
  CHECK(zeros.relative_error == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(zeros.cosine));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(diff("F64", raw<double>({1, kNan}), raw<double>({1, 2})).relative_error));
}

}  // namespace
}  // namespace masque::store
