// Rules of PyTorch files beyond their pickles: a bad file for each, made from a good one.
#include <set>

#include <doctest/doctest.h>

#include "store/format.hpp"
#include "support/make_torch.hpp"
#include "support/memory_file.hpp"
#include "support/rules.hpp"
#include "support/temp_folder.hpp"
#include "support/torch_oracle.hpp"

namespace masque::store {
namespace {

using test::legacy_keys;
using test::legacy_state;
using test::legacy_storage;
using test::legacy_system;
using test::make_zip;
using test::pickled;
using test::pickled_dict;
using test::pickled_number;
using test::pickled_state;
using test::pickled_storage;
using test::pickled_tensor;
using test::pickled_text;
using test::torch_legacy;
using test::torch_parts;
using test::torch_zip;
using test::ZipPart;

std::string rule_of(const std::string& file) {
  CHECK(test::wrong_torch(file) == "");
  const auto read = read_weights(test::MemoryFile(file).open());
  const auto* violation = std::get_if<Violation>(&read);
  return violation == nullptr ? "" : violation->rule;
}

const std::string kTensor = pickled_tensor(pickled_storage(6), 0, {2, 3}, {3, 1});

std::string good_zip() { return torch_zip(pickled(pickled_state())); }

std::string good_legacy() { return torch_legacy(legacy_state(), legacy_keys(), legacy_storage()); }

/// The good zip with one member more, or another one.
std::string with_part(const ZipPart& part) {
  auto parts = torch_parts(pickled(pickled_state()));
  std::erase_if(parts, [&](const ZipPart& other) { return other.name == part.name; });
  parts.push_back(part);
  return make_zip(parts).text;
}

std::string state_zip(const std::string& opcodes) { return torch_zip(pickled(opcodes)); }

std::string without_storage(const std::string& opcodes) {
  auto parts = torch_parts(pickled(opcodes));
  parts.erase(parts.begin() + 2);
  return make_zip(parts).text;
}

struct BadCase {
  std::string rule;
  std::string file;
};

std::vector<BadCase> bad_cases() {
  const std::string dict = pickled_dict("w", kTensor);
  auto no_pickle = torch_parts("");
  no_pickle.erase(no_pickle.begin());
  auto packed = torch_parts(pickled(pickled_state()));
  packed[2].method = 8;
  packed[2].data = std::string("\x8B\x22\x13\x00\x00", 5);
  packed[2].bytes = 24;
  ZipPart damaged = torch_parts(pickled(pickled_state()))[0];
  damaged.crc = 1;
  return {
      {"torch-member", with_part({.name = "b/x"})},
      {"torch-member", with_part({.name = "x"})},
      {"torch-member", make_zip(no_pickle).text},
      {"torch-member", make_zip({{.name = "config.json"}, {.name = "model.weights.h5"}}).text},
      {"torch-member", make_zip({{.name = "a/b/data.pkl"}}).text},
      {"torch-script", with_part({.name = "a/constants.pkl"})},
      {"torch-script", with_part({.name = "a/code/x.py"})},
      {"torch-byteorder", with_part({.name = "a/byteorder", .data = "middle"})},
      {"torch-byteorder", with_part({.name = "a/byteorder", .data = ""})},
      {"torch-version", with_part({.name = "a/version", .data = "0\n"})},
      {"torch-version", with_part({.name = "a/version", .data = "11\n"})},
      {"torch-version", with_part({.name = "a/version", .data = "3x"})},
      {"limit-pickle", with_part({.name = "a/version", .data = std::string(65, '3')})},
      {"torch-storage", without_storage(pickled_state())},
      {"torch-storage", torch_zip(pickled(pickled_state()), std::string(23, 'x'))},
      {"torch-storage", torch_zip(pickled(pickled_state()), std::string(25, 'x'))},
      {"torch-storage", with_part({.name = "a/data/1"})},
      {"zip-method", make_zip(packed).text},
      {"zip-crc", with_part(damaged)},
      {"zip-duplicate", with_part({.name = "a/DATA.PKL"})},
      {"pickle-rest", torch_zip(pickled(pickled_state()) + "N")},
      {"torch-state-dict", without_storage("N")},
      {"torch-state-dict", state_zip(kTensor)},
      {"torch-state-dict", state_zip(pickled_dict("a", kTensor) + "NNs0N")},
      {"torch-state-dict", state_zip("}(N" + kTensor + pickled_text("w") + kTensor + "u")},
      {"torch-state-dict", state_zip("}(" + pickled_text("model") + dict + pickled_text("ema") +
                                     dict + pickled_text("step") + "Nu")},
      {"torch-state-dict", without_storage(pickled_dict("a", "N"))},
      {"duplicate-key",
       state_zip("}(" + pickled_text("a") + kTensor + pickled_text("a") + kTensor + "u")},
      {"limit-name", state_zip(pickled_dict(std::string(65'537, 'a'), kTensor))},
      {"pickle-tensor", state_zip(pickled_dict(
                            "a", test::pickled_global("torch._utils", "_rebuild_tensor_v3") + "(" +
                                     pickled_storage(6) + "K" + test::number(0, 1) + "))\x89}" +
                                     test::pickled_global("torch", "float4_e2m1fn_x2") + "tR"))},
      {"legacy-header", torch_legacy(legacy_state(), legacy_keys(), legacy_storage(),
                                     legacy_system(), pickled("M\xEA\x03"))},
      {"legacy-header",
       torch_legacy(legacy_state(), legacy_keys(), legacy_storage(), legacy_system("\x89"))},
      {"legacy-header",
       torch_legacy(legacy_state(), legacy_keys(), legacy_storage(), legacy_system("N"))},
      {"legacy-header",
       torch_legacy(legacy_state(), legacy_keys(), legacy_storage(), pickled("}"))},
      {"legacy-header",
       torch_legacy(legacy_state(), legacy_keys(), legacy_storage(), pickled("N"))},
      {"legacy-storages", torch_legacy(legacy_state(), pickled("N"), legacy_storage())},
      {"legacy-storages", torch_legacy(legacy_state(), pickled("]Na"), legacy_storage())},
      {"legacy-storages",
       torch_legacy(legacy_state(), pickled("]" + pickled_text("1") + "a"), legacy_storage())},
      {"legacy-storages",
       torch_legacy(legacy_state(), pickled("](" + pickled_text("0") + pickled_text("0") + "e"),
                    legacy_storage() + legacy_storage())},
      {"legacy-storages", torch_legacy(legacy_state(), pickled("]"), "")},
      {"legacy-storages", torch_legacy(legacy_state(), legacy_keys(), "1234567")},
      {"legacy-storages", torch_legacy(legacy_state(), legacy_keys(), legacy_storage(5))},
      {"legacy-storages",
       torch_legacy(legacy_state("N", 1ULL << 40), legacy_keys(), legacy_storage(1ULL << 40))},
      {"legacy-storages", torch_legacy(legacy_state(), legacy_keys(), legacy_storage() + "x")},
      {"pickle-storage", torch_legacy(legacy_state(pickled_text("1") + "K\x05K\x02\x87"),
                                      legacy_keys(), legacy_storage())},
      {"pickle-bounds", torch_legacy(legacy_state(pickled_text("1") + "K\x01K\x05\x87"),
                                     legacy_keys(), legacy_storage())},
      {"unsupported-format", std::string(257, 'a') + "ustar"},
      {"unsupported-format", pickled("}")},
  };
}

TEST_CASE("the files that the bad ones are made from are good") {
  CHECK(rule_of(good_zip()) == "");
  CHECK(rule_of(good_legacy()) == "");
  CHECK(rule_of(with_part({.name = "a/.data/serialization_id"})) == "");
  CHECK(rule_of(with_part({.name = "a/version", .data = "10"})) == "");
}

TEST_CASE("every bad file is refused by its rule") {
  int number = 0;
  for (const BadCase& row : bad_cases()) {
    CAPTURE(number++);
    CHECK(rule_of(row.file) == row.rule);
  }
}

TEST_CASE("every rule of the PyTorch sources has a test") {
  std::set<std::string> tested = {"limit-tensors"};  // a million of them
  for (const BadCase& row : bad_cases()) tested.insert(row.rule);
  std::set<std::string> written = {"zip-crc", "zip-duplicate", "pickle-storage", "pickle-bounds",
                                   "unsupported-format"};
  for (const char* file : {"torch_state.cpp", "torch_format.cpp", "torch_legacy_format.cpp"})
    written.merge(
        test::rules_in(test::read_file(std::string(MASQUE_SOURCES "/store/torch/") + file)));
  CHECK(written == tested);
}

TEST_CASE("a pickle longer than the first look is read again") {
  std::string many = "}(";
  for (int i = 0; i < 9000; ++i) many += pickled_text("entry " + std::to_string(i)) + "N";
  many += pickled_text("a") + kTensor.substr(0, 0);
  const std::string tensor =
      pickled_tensor(pickled_storage(6, "FloatStorage", "0", "N"), 0, {2, 3}, {3, 1});
  const std::string state = pickled(many + tensor + "u");
  CHECK(state.size() > 2 << 16);
  const std::string file = torch_legacy(state, legacy_keys(), legacy_storage());
  CHECK(rule_of(file) == "");
  const auto read = read_weights(test::MemoryFile(file).open());
  CHECK(std::get<FileContent>(read).tensors.size() == 1);
}

}  // namespace
}  // namespace masque::store
