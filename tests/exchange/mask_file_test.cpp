// Masks into files and back, in every format and convention.
#include "exchange/mask_file.hpp"

#include <cstring>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "exchange/convention.hpp"
#include "exchange/matrix.hpp"
#include "exchange/read_masks.hpp"
#include "mask/expression.hpp"
#include "store/numpy/array.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::exchange {
namespace {

using test::message_of;
using test::TempFolder;
using test::write_file;

mask::Mask bound(const char* text, mask::Lengths lengths) {
  return mask::parse_mask(text).bind(lengths);
}

const std::vector<std::pair<const char*, mask::Lengths>>& samples() {
  static const std::vector<std::pair<const char*, mask::Lengths>> all = {
      {"causal", {1, 1}},          {"causal", {9, 9}},
      {"random(0.5,1)", {16, 16}}, {"tta & document(3,5,57)", {65, 65}},
      {"causal(13)", {70, 83}},    {"~full", {5, 5}},
      {"full", {3, 200}},          {"causal(4200)", {3, 4203}},
  };
  return all;
}

TEST_CASE("masks come back from every kind of file") {
  const TempFolder folder;
  for (const auto& sample : samples()) {
    const auto& text = sample.first;
    const auto& lengths = sample.second;
    CAPTURE(text);
    const mask::Mask mask = bound(text, lengths);
    for (const char* name : {"m.npy", "m.npz", "m.safetensors", "m.pbm", "m.tsv", "m.txt"}) {
      CAPTURE(name);
      const std::string path = (folder / name);
      write_mask(path, mask, {});
      CHECK(read_mask(path) == mask::to_bits(mask));
      const mask::MaskExpression from_file =
          mask::parse_mask("explicit(\"" + path + "\")", mask::MaskFiles::kAllowed);
      CHECK(from_file.own_lengths() == lengths);
      CHECK(mask::to_bits(from_file.bind(lengths)) == mask::to_bits(mask));
    }
  }
}

TEST_CASE("masks come back from every convention") {
  const TempFolder folder;
  for (const Convention* convention : conventions()) {
    CAPTURE(convention->name);
    for (const auto& sample : samples()) {
      const auto& text = sample.first;
      const auto& lengths = sample.second;
      CAPTURE(text);
      const bool documents = convention->name == "cu_seqlens";
      const mask::Mask mask = documents ? bound("document(3,5,4)", {12, 12}) : bound(text, lengths);
      for (const char* name : {"c.npy", "c.npz", "c.safetensors", "c.tsv"}) {
        CAPTURE(name);
        const std::string path = (folder / name);
        write_matrix(path, convention->encode(mask, "mask"), std::string(convention->header));
        const store::Array array = read_matrix(path);
        CHECK(convention->decode(array, {.path = path, .lengths = mask.lengths()}) ==
              mask::to_bits(mask));
      }
    }
  }
}

store::Array array_of(Shape shape, std::vector<float> values) {
  store::Array array;
  array.dtype = DType::kF32;
  array.shape = std::move(shape);
  array.data.resize(values.size() * sizeof(float));
  std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

std::vector<float> floats(const MatrixSource& source) {
  std::vector<float> values(*element_count(source.shape));
  source.fill(0, std::as_writable_bytes(std::span(values)));
  return values;
}

const Convention& named(const char* name) { return *find_convention(name); }

TEST_CASE("a shape is refused before the elements are read") {
  const TempFolder folder;
  const std::string path = folder / "many.npz";
  const auto zeros = [](std::uint64_t, MutableBytes out) {
    std::fill(out.begin(), out.end(), std::byte{});
  };
  write_matrix(path, {DType::kF32, {2, 3, 4}, zeros}, "");
  CHECK(test::contains(test::message_of([&] { read_mask(path); }), "2 masks in shape [2,3,4]"));
  const std::string one = folder / "one.npz";
  write_matrix(one, {DType::kF32, {6, 4}, zeros}, "");
  // Where they are read, damage is found first.
  for (const std::string& damaged : {path, one}) {
    std::string bytes = test::read_file(damaged);
    const std::size_t at = bytes.find(std::string(40, '\0'));
    REQUIRE(at != std::string::npos);
    bytes[at + 20] = '\1';
    test::write_file(damaged, bytes);
  }
  CHECK(test::contains(test::message_of([&] { read_mask(one, mask::Lengths{6, 4}); }), "CRC"));
  const std::string text = "explicit(\"" + one + "\")";
  const mask::MaskExpression expression = mask::parse_mask(text, mask::MaskFiles::kAllowed);
  CHECK(test::message_of([&] {
          expression.bind({4, 4});
        }) == one + ": a mask of 6 × 4, expected 4 × 4");
  CHECK(test::message_of([&] { with_files_read(text); }) ==
        one + ": a mask of 6 × 4, expected as many queries as keys");
  CHECK(test::contains(test::message_of([&] { read_matrix(path); }), "CRC"));
  for (const Convention* convention : conventions()) {
    CAPTURE(convention->name);
    const DecodeRequest request{.path = path, .lengths = mask::Lengths{3, 4}};
    CHECK(test::contains(test::message_of([&] { read_mask(*convention, path, request); }),
                         "shape [2,3,4]"));
  }
}

TEST_CASE("each convention writes the numbers that its program expects") {
  const mask::Mask causal = bound("causal", {2, 2});
  CHECK(named("perm_mask").encode(causal, "").shape == Shape{1, 2, 2});
  CHECK(floats(named("perm_mask").encode(causal, "")) == std::vector<float>{0, 1, 0, 0});
  CHECK(named("hf").encode(causal, "").shape == Shape{1, 1, 2, 2});
  CHECK(floats(named("hf").encode(causal, "")) ==
        std::vector<float>{0, -3.4028234663852886e38F, 0, 0});
  CHECK(floats(named("additive").encode(causal, ""))[1] == -std::numeric_limits<float>::infinity());
  const auto bytes = [](const MatrixSource& source) {
    std::vector<std::byte> out(*byte_count(source.dtype, source.shape));
    source.fill(0, out);
    return out;
  };
  CHECK(bytes(named("allow").encode(causal, "")) ==
        std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{1}, std::byte{1}});
  CHECK(bytes(named("forbid").encode(causal, "")) ==
        std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{0}, std::byte{0}});
  // Bit 0 of a byte is the first key.
  CHECK(bytes(named("packed").encode(bound("causal", {3, 3}), "")) ==
        std::vector<std::byte>{std::byte{1}, std::byte{3}, std::byte{7}});
}

TEST_CASE("biases of other programs count as blocked, scores do not") {
  const DecodeRequest request{.path = "f"};
  const mask::BitMatrix bits =
      named("additive").decode(array_of({1, 4}, {0, -10000, -1e9F, -65504}), request);
  CHECK(bits.count() == 1);
  CHECK(message_of<InputError>([&] {
          named("additive").decode(array_of({1, 2}, {0, -0.5F}), request);
        }) == "f: query 0 key 1: found -0.5, expected 0, or -10000 or less");
}

TEST_CASE("what is no mask is refused by its first wrong cell") {
  const DecodeRequest request{.path = "f"};
  const auto message = [&](const char* convention, const store::Array& array,
                           std::optional<mask::Lengths> lengths = std::nullopt) {
    return message_of<InputError>(
        [&] { named(convention).decode(array, {.path = "f", .lengths = lengths}); });
  };
  CHECK_THROWS_AS(named("packed").decode(array_of({1, 1}, {1}), request), UsageError);
  CHECK_THROWS_AS(named("intervals").decode(array_of({1, 3}, {0, 0, 1}), request), UsageError);
  CHECK(message("allow", array_of({2, 2}, {0, 1, 1, 2})) ==
        "f: query 1 key 1: found 2, expected 0 or 1");
  CHECK(message("allow", array_of({4}, {0, 1, 1, 0})) ==
        "f: an array of shape [4], expected queries × keys");
  CHECK(message("allow", array_of({2, 1, 2}, {0, 1, 1, 0})) ==
        "f: 2 masks in shape [2,1,2], expected one: choose one with mask-viz convert item ITEM");
  CHECK(
      named("allow").decode(array_of({2, 1, 2}, {0, 0, 1, 0}), {.path = "f", .item = 1}).get(0, 0));
  CHECK(message_of<InputError>([&] {
          named("allow").decode(array_of({1, 1}, {0}), {.path = "f", .item = 3});
        }) == "f: 1 masks in shape [1,1], no item 3");
  CHECK(message("cu_seqlens", array_of({3}, {0, 5, 3})) ==
        "f: shape [3], expected a list that begins with 0 and rises");
  CHECK(message("cu_seqlens", array_of({2}, {0, 2.5F})) ==
        "f: found 2.5, expected whole numbers from 0");
  CHECK(message("intervals", array_of({1, 2}, {0, 2})) ==
        "f: shape [1,2], expected rows of query, begin, end");
  CHECK(message("intervals", array_of({1, 3}, {0, 3, 2}), mask::Lengths{2, 2}) ==
        "f: query 0 keys 3 to 2, expected a run within 2 × 2");
  CHECK(message("packed", array_of({3}, {0, 3, 2})) == "f: shape [3], expected rows of bytes");
  CHECK(message("packed", array_of({1, 1}, {256}), mask::Lengths{1, 1}) ==
        "f: found 256, expected bytes");
  CHECK(message("packed", array_of({1, 1}, {2}), mask::Lengths{1, 1}) ==
        "f: query 0: a bit after its 1 keys");
  const Index many = Index{1} << 31;
  CHECK(message_of<InputError>([&] {
          named("cu_seqlens").encode(bound("full", {many, many}), "f");
        }) == "f: cu_seqlens of 2147483648 tokens, expected at most 2147483647");
  CHECK(message_of<InputError>([&] {
          named("cu_seqlens").encode(bound("causal", {4, 4}), "f");
        }) ==
        "f: cu_seqlens can describe only documents that read all of themselves; query 0 does not "
        "read key 1 of its document");
}

mask::BitMatrix text_mask(const std::string& text) { return parse_mask_text(text, "f"); }

TEST_CASE("text and bitmaps are checked") {
  CHECK(text_mask("#.\n##\n").count() == 3);
  CHECK(text_mask("#.\r\n##").count() == 3);
  CHECK(message_of<InputError>([] { text_mask("#.\n#\n"); }) ==
        "f: line 2: 1 cells, expected 2 as in the first");
  CHECK(message_of<InputError>([] { text_mask("#x\n"); }) ==
        "f: line 1: found 'x', expected # or .");
  CHECK(parse_mask_pbm("P1\n# a comment\n3 2\n1 0 1\n010", "f").count() == 3);
  CHECK(parse_mask_pbm(std::string("P4\n9 2\n\x80\x00\xC0\x80", 11), "f").count() == 4);
  const auto bad = [](std::string_view bytes) {
    return message_of<InputError>([&] { parse_mask_pbm(bytes, "f"); });
  };
  CHECK(bad("P1 0 4028232331") == "f: a mask of 4028232331 × 0 has no cells, expected some");
  CHECK(bad("P4\n9 2\n\x80") == "f: PBM of 9 × 2: 1 bytes of cells, expected 4");
  CHECK(bad("P4\n4294967296 4294967296\n") ==
        "f: PBM of 4294967296 × 4294967296: 0 bytes of cells, expected 2305843009213693952");
  CHECK(message_of<InputError>([] {
          parse_mask_json(R"({"queries":2,"keys":4294967296,"rows":[[],[]]})", "f");
        }) == "f: a mask of 2 × 4294967296 cells, expected at most 4294967296 cells");
  CHECK(bad("P1\n2 1\n0 2") == "f: PBM: no cell at byte 9, expected 0 or 1");
  CHECK(bad("P1\nx") == "f: PBM: no width at byte 3, expected a number up to 2^32");
  CHECK(bad("P6\n") == "f: not a PBM file, expected P1 or P4 at the start");
}

TEST_CASE("numbers in text may have a header and must be as many in every line") {
  const TempFolder folder;
  const auto read = [&](const char* text) {
    write_file(folder / "n.tsv", text);
    return read_matrix(folder / "n.tsv");
  };
  CHECK(read("1\t0\n1\t1\n").shape == Shape{2, 2});
  CHECK(read("query begin end\n0 0 1\n").shape == Shape{1, 3});
  CHECK(read("0 -inf\n0 0").shape == Shape{2, 2});
  CHECK(message_of<InputError>([&] {
          read("1 0\n1\n");
        }).ends_with("n.tsv: line 2: 1 numbers, expected 2 as before"));
  CHECK(message_of<InputError>([&] {
          read("1 0\n1 x\n");
        }).ends_with("n.tsv: line 2: found 'x', expected a number"));
}

TEST_CASE("text that is no matrix is never taken for an empty one") {
  const TempFolder folder;
  const auto refused = [&](std::string_view text) {
    write_file(folder / "n.tsv", text);
    return message_of<InputError>([&] { read_mask(folder / "n.tsv"); });
  };
  for (const char* text : {"", "\n", "hello world\n", "hello world", "+1 0\n0 1\n", "[[1, 0]]\n",
                           "True\tFalse\n", "{\"a\":1}\n", "\xff\xff\xff", "1,0\n0,1\n"}) {
    CAPTURE(text);
    CHECK(refused(text).find("n.tsv: ") != std::string::npos);
  }
  write_file(folder / "n.tsv",
             "\xEF\xBB\xBF"
             "1 0\n1 1\n");
  CHECK(read_mask(folder / "n.tsv").count() == 3);
  write_mask(folder / "m.json", bound("causal", {3, 3}), {});
  CHECK(read_mask(folder / "m.json").count() == 6);
  CHECK(message_of<InputError>([&] {
          store::Array flags;
          flags.dtype = DType::kBool;
          flags.shape = {1, 1};
          flags.data = {std::byte{0}};
          named("hf").decode(flags, {.path = "f"});
        }).starts_with("f: true and false"));
}

TEST_CASE("arrays of files with several are named") {
  const TempFolder folder;
  store::Array a = array_of({2, 2}, {1, 0, 1, 1});
  store::Array b = array_of({1, 1}, {1});
  a.name = "first";
  b.name = "second";
  const std::vector<store::Array> arrays = {a, b};
  const std::string path = (folder / "two.npz");
  store::write_npz(path, arrays);
  CHECK(read_mask(path + ":first").count() == 3);
  CHECK(read_mask(path + ":second").count() == 1);
  CHECK_THROWS_AS(read_mask(path), InputError);
  CHECK_THROWS_AS(read_mask(path + ":third"), InputError);
}

TEST_CASE("files of other lengths than requested are refused") {
  const TempFolder folder;
  const std::string path = (folder / "m.pbm");
  write_mask(path, bound("causal", {4, 4}), {});
  CHECK(message_of<InputError>([&] {
          mask::parse_mask("explicit(\"" + path + "\")", mask::MaskFiles::kAllowed).bind({5, 5});
        }) == path + ": a mask of 4 × 4, expected 5 × 5");
}

TEST_CASE("huge masks are refused with the size that they would have") {
  const TempFolder folder;
  const mask::Mask mask = bound("causal", {1'000'000, 1'000'000});
  CHECK(message_of<InputError>([&] { write_mask((folder / "m.npy"), mask, {}); }) ==
        (folder / "m.npy") +
            ": 1000000 × 1000000 cells are 1000.0 GB, expected at most 2^31 cells without force");
  CHECK(message_of<InputError>([&] {
          write_mask((folder / "m.pbm"), mask, {});
        }).find("125.0 GB") != std::string::npos);
  CHECK(message_of<UsageError>([&] {
          write_mask((folder / "m.doc"), bound("causal", {2, 2}), {});
        }).find("expected a name that ends in") != std::string::npos);
}

TEST_CASE("JSON holds runs") {
  std::string text;
  print_mask_json(bound("causal & tta_window(0)", {3, 3}), "x",
                  [&](std::string_view s) { text += s; });
  CHECK(text == "{\"mask\":\"x\",\"queries\":3,\"keys\":3,\"rows\":[[],[[0,1]],[[0,2]]]}\n");
}

}  // namespace
}  // namespace masque::exchange
