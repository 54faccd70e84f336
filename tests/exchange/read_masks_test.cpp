// Masks of files as expressions that name no file.
#include "exchange/read_masks.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "exchange/mask_file.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/expression.hpp"
#include "store/numpy/array.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::exchange {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;

mask::BitMatrix bits_of(const std::string& text, Index n) {
  return mask::to_bits(mask::parse_mask(text).bind({n, n}));
}

/// A file of BOOL masks in this shape.
std::string write_masks(const std::string& path, const Shape& shape,
                        const std::vector<mask::BitMatrix>& masks) {
  std::vector<std::byte> cells;
  for (const mask::BitMatrix& bits : masks) {
    for (Index i = 0; i < bits.rows(); ++i) {
      for (Index j = 0; j < bits.columns(); ++j)
        cells.push_back(static_cast<std::byte>(bits.get(i, j) ? 1 : 0));
    }
  }
  store::write_npy(path, DType::kBool, shape, [&](std::uint64_t offset, MutableBytes out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = cells[offset + i];
  });
  return path;
}

std::string explicit_mask(const std::string& path) { return "explicit(\"" + path + "\")"; }

TEST_CASE("a file in an expression becomes its cells") {
  const TempFolder folder;
  const std::string path = (folder / "m.npy");
  for (const Index n : {Index{1}, Index{4}, Index{13}, Index{64}, Index{67}}) {
    CAPTURE(n);
    const mask::BitMatrix random = bits_of("random(0.4,7)", n);
    write_masks(path, {static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(n)}, {random});
    const std::string text = with_files_read("causal & " + explicit_mask(path));
    CHECK_FALSE(contains(text, "explicit"));
    CHECK_FALSE(contains(text, path));
    // The language without files reads it, as config.json does.
    CHECK(bits_of(text, n) ==
          mask::to_bits(mask::from_bits(random) & mask::parse_mask("causal").bind({n, n})));
    CHECK(mask::parse_mask_layers(text).front().mask.own_lengths() == mask::Lengths{n, n});
  }
  for (const char* same : {"causal", " causal&window( 3 )", "3*full, tta_word", "disco"}) {
    CAPTURE(same);
    CHECK(with_files_read(same) == same);
  }
}

TEST_CASE("a file has one mask, or one for each layer") {
  const TempFolder folder;
  const mask::BitMatrix a = bits_of("causal", 5), b = bits_of("tta", 5);
  const auto counts = [](const std::vector<mask::MaskLayer>& layers) {
    std::vector<Index> out;
    for (const mask::MaskLayer& layer : layers) out.push_back(layer.count);
    return out;
  };
  const auto read = [](const std::string& text) { return read_mask_layers(text); };
  const std::string layers = write_masks(folder / "layers.npy", {3, 5, 5}, {a, a, b});
  const std::vector<mask::MaskLayer> list = read(explicit_mask(layers));
  CHECK(counts(list) == std::vector<Index>{2, 1});
  CHECK(mask::to_bits(list[0].mask.bind({5, 5})) == a);
  CHECK(mask::to_bits(list[1].mask.bind({5, 5})) == b);
  CHECK(counts(read("~" + explicit_mask(layers) + " | diagonal")) == std::vector<Index>{2, 1});
  const std::string heads = write_masks(folder / "heads.npy", {2, 2, 5, 5}, {a, a, b, b});
  CHECK(counts(read(explicit_mask(heads))) == std::vector<Index>{1, 1});
  const std::string one = write_masks(folder / "one.npy", {1, 1, 5, 5}, {a});
  CHECK(counts(read("3*" + explicit_mask(one) + ", full")) == std::vector<Index>{3, 1});

  const auto refusal = [&](const std::string& text) {
    return message_of<InputError>([&] { read(text); });
  };
  const std::string unlike = write_masks(folder / "unlike.npy", {2, 2, 5, 5}, {a, a, a, b});
  const std::vector<mask::MaskLayer> by_head = read("causal & " + explicit_mask(unlike));
  REQUIRE(counts(by_head) == std::vector<Index>{1, 1});
  for (std::size_t layer = 0; layer < 2; ++layer) {
    REQUIRE(by_head[layer].mask.heads().size() == 2);
    for (std::size_t head = 0; head < 2; ++head) {
      CHECK(mask::to_bits(by_head[layer].mask.heads()[head].bind({5, 5})) ==
            bits_of(layer == 1 && head == 1 ? "causal & tta" : "causal", 5));
    }
  }
  const std::string text = with_files_read(explicit_mask(unlike));
  CHECK_FALSE(contains(text, "explicit"));
  CHECK(mask::parse_mask_layers(text) == read(explicit_mask(unlike)));
  const std::vector<mask::MaskLayer> listed = read("2*[" + explicit_mask(one) + ", tta], [3*full]");
  CHECK(counts(listed) == std::vector<Index>{2, 1});
  CHECK(mask::to_bits(listed[0].mask.heads()[0].bind({5, 5})) == a);
  const std::string three = write_masks(folder / "three.npy", {1, 3, 5, 5}, {a, b, a});
  CHECK(contains(refusal(explicit_mask(unlike) + " & " + explicit_mask(three)),
                 "masks of 2 heads, expected 3 as in another file of the expression"));
  CHECK(contains(message_of<UsageError>([&] { read("[" + explicit_mask(three) + ", full]"); }),
                 "a file with 3 masks, one for each head, expected one mask in a list"));
  const std::string two = write_masks(folder / "two.npy", {2, 5, 5}, {a, b});
  CHECK(contains(refusal(explicit_mask(layers) + " & " + explicit_mask(two)),
                 "masks of 2 layers, expected 3 as in another file of the expression"));
  CHECK(contains(message_of<UsageError>([&] { read(explicit_mask(layers) + ", full"); }),
                 "a file with 3 masks, one for each layer, expected one mask in a list"));
  const std::string wide = write_masks(folder / "wide.npy", {1, 25}, {a});
  CHECK(refusal(explicit_mask(wide)) ==
        wide + ": a mask of 1 × 25, expected as many queries as keys");
  CHECK(contains(refusal(explicit_mask(write_masks(folder / "deep.npy", {1, 1, 1, 5, 5}, {a}))),
                 "expected [n, n], [layers, n, n] or [layers, heads, n, n]"));
}

TEST_CASE("only a command line names files") {
  const std::string text = "causal & explicit(m.npy)";
  for (const auto& parse : {+[](const std::string& t) { mask::parse_mask(t); },
                            +[](const std::string& t) { mask::parse_open_mask(t); },
                            +[](const std::string& t) { mask::parse_mask_layers(t); },
                            +[](const std::string& t) { mask::parse_open_mask_layers(t); }}) {
    CHECK(message_of<UsageError>([&] { parse(text); }) ==
          "'causal & explicit(m.npy)': column 10: explicit reads a file, which is not allowed "
          "here");
  }
  CHECK_NOTHROW(mask::parse_mask(text, mask::MaskFiles::kAllowed));
}

TEST_CASE("additive masks are recognized") {
  const TempFolder folder;
  const std::string path = (folder / "m.npy");
  const std::vector<float> cells{0, -3.4e38F, 0, 0};
  store::write_npy(path, DType::kF32, {2, 2}, [&](std::uint64_t offset, MutableBytes out) {
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(cells.data()) + offset, out.size());
  });
  CHECK(contains(message_of<InputError>([&] { read_mask(path); }),
                 "expected 0 or 1; mask-viz convert from hf to allow changes numbers that are "
                 "added to scores into such a mask"));
}

}  // namespace
}  // namespace masque::exchange
