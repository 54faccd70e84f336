// The pickle machine: every rule has a pickle that breaks it, and hostile ones come to nothing.
#include "store/torch/pickle.hpp"

#include <functional>
#include <set>

#include <doctest/doctest.h>

#include "support/make_torch.hpp"
#include "support/rules.hpp"
#include "support/temp_folder.hpp"
#include "support/torch_oracle.hpp"

namespace masque::store {
namespace {

using test::number;
using test::pickled;
using test::pickled_dict;
using test::pickled_global;
using test::pickled_number;
using test::pickled_state;
using test::pickled_storage;
using test::pickled_tensor;
using test::pickled_text;
using test::pickled_tuple;

constexpr std::uint64_t kBegin = 1000;

Checked<Pickle> read(const std::string& data, std::size_t items = 5,
                     const PickleLimits& limits = {}) {
  return read_pickle(data, kBegin, items, limits);
}

std::string rule_of(const std::string& data, std::size_t items = 5) {
  const auto checked = read(data, items);
  const auto* violation = std::get_if<Violation>(&checked);
  return violation == nullptr ? "" : violation->rule;
}

Pickle good(const std::string& data) { return value_or_throw(read(data)); }

std::string reduced(std::string_view module, std::string_view name, std::string_view arguments) {
  return pickled(pickled_global(module, name) + std::string(arguments) + "R");
}

std::string tensor_with(std::uint64_t offset, const std::vector<std::uint64_t>& sizes,
                        const std::vector<std::uint64_t>& strides,
                        std::string_view rest = "\x89}") {
  return pickled(pickled_tensor(pickled_storage(6), offset, sizes, strides, rest));
}

std::string named(const std::string& items) { return pickled("(" + items + "tQ"); }

TEST_CASE("a state dict becomes a dict of a tensor") {
  const std::string data = pickled(pickled_state());
  const Pickle pickle = good(data + "rest");
  CHECK(pickle.end == data.size());
  REQUIRE(pickle.kind(pickle.top) == PickleKind::kDict);
  const auto items = pickle.items(pickle.top);
  REQUIRE(items.size() == 2);
  CHECK(pickle.text(items[0]) == "a");
  const PickleTensor& tensor = pickle.tensor(items[1]);
  CHECK(tensor.sizes == Shape{2, 3});
  CHECK(tensor.strides == Shape{3, 1});
  CHECK(tensor.dtype == DType::kF32);
  REQUIRE(pickle.storages.size() == 1);
  CHECK(pickle.storages[0].key == "0");
  CHECK(pickle.storages[0].bytes() == 24);
}

TEST_CASE("opcodes of all kinds leave what they say") {
  const auto kind_of = [](const std::string& data) {
    const Pickle pickle = good(data);
    return pickle.kind(pickle.top);
  };
  CHECK(kind_of(pickled("N")) == PickleKind::kNone);
  CHECK(kind_of(pickled("\x88")) == PickleKind::kBool);
  CHECK(kind_of(pickled("G" + number(0, 8))) == PickleKind::kOpaque);
  CHECK(kind_of(pickled("\x8F")) == PickleKind::kOpaque);
  CHECK(kind_of(pickled("U\x02"
                        "ab")) == PickleKind::kText);
  CHECK(kind_of(pickled("T" + number(1, 4) + "a")) == PickleKind::kText);
  CHECK(kind_of(pickled("NN\x86")) == PickleKind::kTuple);
  CHECK(kind_of(pickled("](NNe")) == PickleKind::kList);
  CHECK(kind_of(pickled("NN0")) == PickleKind::kNone);
  CHECK(kind_of(pickled("]q\x05h\x05"
                        "0")) == PickleKind::kList);
  CHECK(kind_of(pickled("]r" + number(300, 4) + "j" + number(300, 4) + "0")) == PickleKind::kList);
  CHECK(kind_of(reduced("collections", "OrderedDict", ")")) == PickleKind::kDict);
  CHECK(kind_of(reduced("collections", "OrderedDict",
                        "]NN\x86"
                        "a\x85")) == PickleKind::kDict);
  CHECK(kind_of(reduced("collections", "Counter", "}NNs\x85")) == PickleKind::kDict);
  CHECK(kind_of(reduced("torch", "Size", "K\x02\x85\x85")) == PickleKind::kTuple);
  CHECK(
      kind_of(reduced("_codecs", "encode", pickled_text("x") + pickled_text("latin1") + "\x86")) ==
      PickleKind::kOpaque);
  const std::string tensor = pickled_tensor(pickled_storage(6), 0, {6}, {1});
  CHECK(kind_of(reduced("torch._utils", "_rebuild_parameter", "(" + tensor + "\x88}t")) ==
        PickleKind::kTensor);
  CHECK(kind_of(reduced("torch._tensor", "_rebuild_from_type_v2",
                        "(" + pickled_global("torch._utils", "_rebuild_tensor") +
                            pickled_global("torch", "Tensor") + "(" + pickled_storage(6) + "K" +
                            number(0, 1) + pickled_tuple({6}) + pickled_tuple({1}) + "t}t")) ==
        PickleKind::kTensor);
}

TEST_CASE("whole numbers of any length are read or not looked at") {
  const auto number_of = [](const std::string& opcodes) {
    const Pickle pickle = good(pickled(opcodes));
    CHECK(pickle.kind(pickle.top) == PickleKind::kInt);
    return pickle.values[pickle.top].number;
  };
  CHECK(number_of("K\xFF") == 255);
  CHECK(number_of("M\x01\x02") == 513);
  CHECK(number_of("J" + number(~0ULL, 4)) == -1);
  CHECK(number_of(std::string("\x8A\x00", 2)) == 0);
  CHECK(number_of("\x8A\x01\xFF") == -1);
  CHECK(number_of(std::string("\x8A\x02\xFF\x00", 4)) == 255);
  CHECK(number_of("\x8A\x08" + number(1ULL << 62, 8)) == 1LL << 62);
  const Pickle long_one = good(pickled("\x8A\x09" + number(~0ULL, 9)));
  CHECK(long_one.kind(long_one.top) == PickleKind::kOpaque);
}

struct BadCase {
  std::string rule;
  std::string data;
  std::size_t items = 5;
};

/// Every rule; hostile pickles among them.
std::vector<BadCase> bad_cases() {
  const std::string storage = pickled_text("storage") + pickled_global("torch", "FloatStorage");
  const std::string tail = pickled_text("cpu") + "K\x06";
  const std::string tensor = "torch._utils";
  return {
      {"pickle-short", ""},
      {"pickle-short", "\x80\x02"},
      {"pickle-short", "\x80\x02X\x05"},
      {"pickle-short", "\x80\x02" + pickled_text("abc").substr(0, 6)},
      {"pickle-short",
       "\x80\x02"
       "X" +
           number(~0ULL, 4) + "a."},
      {"pickle-short",
       "\x80\x02"
       "T" +
           number(~0ULL, 4) + "a."},
      {"pickle-short",
       "\x80\x02"
       "\x8A\xFF"
       "a."},
      {"pickle-short",
       "\x80\x02"
       "ctorch"},
      {"pickle-protocol", std::string("\x80\x01N.")},
      {"pickle-protocol", "(lp0\n."},
      {"pickle-protocol", "\x80\x06N."},
      {"pickle-opcode", pickled("I01\n")},
      {"pickle-opcode", pickled("I0x10\n")},
      {"pickle-opcode", pickled("L1L\n")},
      {"pickle-opcode", pickled("F1.5\n")},
      {"pickle-opcode", pickled("S'a'\n")},
      {"pickle-opcode", pickled("P1\n")},
      {"pickle-opcode", pickled("(ios\nsystem\n")},
      {"pickle-opcode", pickled("(o")},
      {"pickle-opcode", pickled("\x82\x01")},
      {"pickle-opcode", pickled("\x80\x02N")},
      {"pickle-opcode", "\x80\x04\x95" + number(2, 8) + "N."},
      {"pickle-opcode", pickled("\x8C\x02os\x8C\x06system\x93")},
      {"pickle-global", pickled("cos\nsystem\n" + pickled_text("touch /tmp/x") + "\x85R")},
      {"pickle-global", pickled("cposix\nsystem\n")},
      {"pickle-global", pickled("cbuiltins\neval\n")},
      {"pickle-global", pickled("c__builtin__\nexec\n")},
      {"pickle-global", pickled("ctorch.cuda\nTensor\n")},
      {"pickle-global", pickled("ctorch.hub\nload\n")},
      {"pickle-global", pickled("ctorch\n\n")},
      {"pickle-global", pickled("ctorch\nSi\xC3\xA4\n")},
      {"pickle-global", pickled("c" + std::string(300, 'a') + "\nb\n")},
      {"pickle-stack", pickled("0")},
      {"pickle-stack", pickled("")},
      {"pickle-stack", pickled("NN")},
      {"pickle-stack", pickled("N(")},
      {"pickle-stack", pickled("t")},
      {"pickle-stack", pickled("N(0")},
      {"pickle-stack", pickled("N\x86")},
      {"pickle-stack", pickled("R")},
      {"pickle-stack", pickled("q\x01")},
      {"pickle-memo", pickled("h\x01")},
      {"pickle-memo", pickled("Nq\x02h\x01")},
      {"limit-pickle", pickled("Nr" + number(8'000'000, 4))},
      {"limit-pickle", pickled(std::string(1001, '(') + "N")},
      {"limit-pickle", pickled(std::string(1'000'001, 'N'))},
      {"pickle-text", pickled("X" + number(1, 4) + "\xFF")},
      {"pickle-text", pickled("X" + number(3, 4) + "\xED\xA0\x80")},
      {"pickle-type", pickled("NNa")},
      {"pickle-type", pickled(")Na")},
      {"pickle-type", pickled("]NNs")},
      {"pickle-type", pickled("N(NNu")},
      {"pickle-type", pickled("}(Nu")},
      {"pickle-type", pickled("N)R")},
      {"pickle-type", pickled(pickled_global("torch", "Size") + "]R")},
      {"pickle-type", pickled(pickled_tensor(pickled_storage(6), 0, {6}, {1}) + "}b")},
      {"pickle-type", pickled("]}b")},
      {"pickle-call", reduced("torch", "FloatStorage", ")")},
      {"pickle-call", reduced("torch", "float32", ")")},
      {"pickle-call", reduced("collections", "OrderedDict", "NN\x86")},
      {"pickle-call", reduced("collections", "OrderedDict", "N\x85")},
      {"pickle-call", reduced("collections", "OrderedDict", "]Na\x85")},
      {"pickle-call", reduced("collections", "OrderedDict", "])a\x85")},
      {"pickle-call", reduced("torch", "Size", ")")},
      {"pickle-call", reduced(tensor, "_rebuild_parameter", "(NN}t")},
      {"pickle-call", reduced("torch._tensor", "_rebuild_from_type_v2", ")")},
      {"pickle-call", reduced("torch._tensor", "_rebuild_from_type_v2",
                              "(" + pickled_global("torch", "Size") +
                                  pickled_global("torch", "Tensor") + "]\x85}t")},
      {"pickle-call", reduced("torch._tensor", "_rebuild_from_type_v2",
                              "(" + pickled_global("torch._tensor", "_rebuild_from_type_v2") +
                                  pickled_global("torch", "Tensor") + ")}t")},
      {"pickle-storage", pickled("NQ")},
      {"pickle-storage", named(storage + pickled_text("0") + pickled_text("cpu"))},
      {"pickle-storage", named(storage + pickled_text("0") + tail + "N")},
      {"pickle-storage", named(pickled_text("module") + pickled_global("torch", "FloatStorage") +
                               pickled_text("0") + tail)},
      {"pickle-storage", named(pickled_text("storage") + "N" + pickled_text("0") + tail)},
      {"pickle-storage",
       named(pickled_text("storage") + pickled_global("torch", "Size") + pickled_text("0") + tail)},
      {"pickle-storage", named(storage + "N" + tail)},
      {"pickle-storage", named(storage + pickled_text("") + tail)},
      {"pickle-storage", named(storage + pickled_text("../0") + tail)},
      {"pickle-storage", named(storage + pickled_text(std::string(65, '0')) + tail)},
      {"pickle-storage",
       named(storage + pickled_text("0") + pickled_text("cpu") + "J" + number(~0ULL, 4))},
      {"pickle-storage",
       named(storage + pickled_text("0") + pickled_text("cpu") + pickled_number((1ULL << 48) + 1))},
      {"pickle-storage", pickled(pickled_storage(6) + "0" + pickled_storage(7))},
      {"pickle-storage", pickled(pickled_storage(6) + "0" + pickled_storage(6, "IntStorage"))},
      {"pickle-storage", pickled(pickled_storage(6, "FloatStorage", "0", "K\x01")), 6},
      {"pickle-storage",
       pickled(pickled_storage(6, "FloatStorage", "0", pickled_text("1") + "K\x04K\x03\x87")), 6},
      {"pickle-storage",
       pickled(pickled_storage(6, "FloatStorage", "0", pickled_text("1") + "K\x07K\x01\x87")), 6},
      {"pickle-tensor", reduced(tensor, "_rebuild_tensor_v2", ")")},
      {"pickle-tensor", reduced(tensor, "_rebuild_tensor",
                                "(N"
                                "K\x01))t")},
      {"pickle-tensor", tensor_with(0, {6}, {1}, "\x89}NN")},
      {"pickle-tensor", tensor_with(0, {6}, {1}, "\x89}" + pickled_dict("conj", "\x88"))},
      {"pickle-tensor", tensor_with(0, {6}, {1, 1})},
      {"pickle-tensor", pickled(pickled_global(tensor, "_rebuild_tensor") + "(" +
                                pickled_storage(6) + "K" + number(0, 1) + "]]tR")},
      {"pickle-tensor",
       pickled(pickled_global(tensor, "_rebuild_tensor") + "(" + pickled_storage(6) + "N))tR")},
      {"pickle-tensor", pickled(pickled_global(tensor, "_rebuild_tensor") + "(" +
                                pickled_storage(6) + "K" + number(0, 1) + "N\x85N\x85tR")},
      {"pickle-tensor", pickled(pickled_global(tensor, "_rebuild_tensor_v3") + "(" +
                                pickled_storage(6) + "K" + number(0, 1) + "))\x89}NtR")},
      {"limit-rank",
       tensor_with(0, std::vector<std::uint64_t>(65, 1), std::vector<std::uint64_t>(65, 1))},
      {"shape-overflow", tensor_with(0, {1ULL << 40, 1ULL << 40}, {1, 1})},
      {"shape-overflow", tensor_with(0, {1ULL << 62}, {0})},
      {"pickle-bounds", tensor_with(0, {7}, {1})},
      {"pickle-bounds", tensor_with(1, {6}, {1})},
      {"pickle-bounds", tensor_with(7, {}, {})},
      {"pickle-bounds", tensor_with(0, {2, 3}, {4, 1})},
      {"pickle-bounds", tensor_with(0, {2, 3}, {1ULL << 62, 1ULL << 62})},
      {"pickle-bounds", tensor_with(1ULL << 48, {1}, {1})},
      {"limit-expanded", tensor_with(0, {1ULL << 40}, {0})},
  };
}

TEST_CASE("every bad pickle is refused by its rule") {
  for (const BadCase& row : bad_cases()) {
    CAPTURE(row.data.substr(0, 200));
    CHECK(rule_of(row.data, row.items) == row.rule);
    CHECK(test::wrong_pickle(row.data) == "");
  }
}

TEST_CASE("every rule of the pickle sources has a test") {
  std::set<std::string> tested;
  for (const BadCase& row : bad_cases()) tested.insert(row.rule);
  const auto written = test::rules_in(test::read_file(MASQUE_SOURCES "/store/torch/pickle.cpp"));
  CHECK(written.size() >= 14);
  CHECK(written == tested);
}

TEST_CASE("a refused name is reported, with its place in the file") {
  const auto checked =
      read(pickled("Nq\x01"
                   "0cos\nsystem\n"));
  const auto& violation = std::get<Violation>(checked);
  CHECK(violation.message.starts_with("os.system: "));
  CHECK(violation.offset == kBegin + 6);
}

TEST_CASE("values that hold themselves and deep nesting are nothing special") {
  CHECK(rule_of(pickled("]q\x01h\x01"
                        "a")) == "");
  CHECK(rule_of(pickled("}q\x01" + pickled_text("a") + "h\x01s")) == "");
  std::string deep = "N";
  for (int i = 0; i < 200'000; ++i) deep += '\x85';
  CHECK(rule_of(pickled(deep)) == "");
  std::string lists = "]q\x01";
  for (int i = 0; i < 100'000; ++i)
    lists +=
        "]q\x02h\x01"
        "aq\x01";
  CHECK(rule_of(pickled(lists + "0")) != "pickle-opcode");
}

TEST_CASE("what is copied counts as much as what is made") {
  // A list of 1000 pairs that becomes a dict again and again.
  std::string bomb = "]q\x01(";
  for (int i = 0; i < 1000; ++i) bomb += "NN\x86";
  bomb += "e0" + pickled_global("collections", "OrderedDict") +
          "q\x02"
          "0";
  for (int i = 0; i < 100; ++i) bomb += "h\x02h\x01\x85R0";
  const std::string data = pickled(bomb + "N");
  CHECK(rule_of(data) == "");
  const auto limited = read(data, 5, {.values = 100'000});
  CHECK(std::get<Violation>(limited).rule == "limit-pickle");
}

TEST_CASE("a small file is no large checkpoint") {
  const auto many = [](std::uint64_t numel, std::uint64_t elements, std::uint64_t stride,
                       int count) {
    std::string list = "]";
    for (int i = 0; i < count; ++i)
      list += pickled_tensor(pickled_storage(numel), 0, {elements}, {stride}) + "a";
    return rule_of(pickled(list));
  };
  // Expanded to 16 MiB each, 256 MiB together.
  CHECK(many(1, 4 << 20, 0, 16) == "");
  CHECK(many(1, 4 << 20, 0, 17) == "limit-expanded");
  // One storage under many names.
  CHECK(many(1 << 20, 1 << 20, 1, 100) == "");
  CHECK(many(1 << 20, 1 << 20, 1, 101) == "limit-expanded");
  // As large as sizes may be: sums do not wrap.
  const std::uint64_t most = 1ULL << 48;
  CHECK(many(most, most - 1, 1, 100) == "");
  CHECK(many(most, most - 1, 1, 20'000) == "limit-expanded");
  // A buffer of positions as transformers has it.
  CHECK(rule_of(tensor_with(0, {1, 6}, {0, 1})) == "");
}

TEST_CASE("limits are kept to the last unit") {
  const std::string data = pickled("NN\x86");
  CHECK(std::holds_alternative<Pickle>(read(data, 5, {.bytes = data.size()})));
  CHECK(std::holds_alternative<Violation>(read(data, 5, {.bytes = data.size() - 1})));
  CHECK(std::holds_alternative<Pickle>(read(data, 5, {.values = 3})));
  CHECK(std::holds_alternative<Violation>(read(data, 5, {.values = 2})));
  CHECK(std::holds_alternative<Pickle>(read(data, 5, {.stack = 2})));
  CHECK(std::holds_alternative<Violation>(read(data, 5, {.stack = 1})));
}

}  // namespace
}  // namespace masque::store
