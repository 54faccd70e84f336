// Masks whose cells are written out.
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "mask/expression.hpp"
#include "support/message.hpp"

namespace masque::mask {
namespace {

using test::message_of;

TEST_CASE("cells come back from their expression") {
  for (const Index n : {Index{1}, Index{3}, Index{4}, Index{5}, Index{63}, Index{64}, Index{130}}) {
    CAPTURE(n);
    const BitMatrix bits = to_bits(parse_mask("random(0.5,3) | diagonal").bind({n, n}));
    const MaskExpression written = matrix_mask(bits);
    CHECK(to_bits(written.bind({n, n})) == bits);
    const MaskExpression parsed = parse_mask(written.text());
    CHECK(parsed == written);
    CHECK(to_bits(parsed.bind({n, n})) == bits);
    CHECK(parsed.own_lengths() == Lengths{n, n});
  }
  BitMatrix corner(5, 5);
  corner.set(0, 0);
  corner.set(4, 4);
  corner.set(2, 3);
  CHECK(matrix_mask(corner).text() == R"(matrix(5,"80/00/10/00/08"))");
}

TEST_CASE("a matrix that is none is refused, and messages show its begin alone") {
  const auto refusal = [](const char* text, Index n) {
    return message_of<UsageError>([&] { parse_mask(text).bind({n, n}); });
  };
  CHECK(refusal(R"(matrix(5,"80/00/10/00/08"))", 4) == "matrix: 5 × 5 cells, expected 4 × 4");
  CHECK(refusal(R"(matrix(5,"80/00/10/00/0"))", 5) ==
        "matrix: row 4: found 1 digits, expected 2 for 5 keys");
  CHECK(refusal(R"(matrix(5,"80/00/1G/00/08"))", 5) ==
        "matrix: row 2: found '1G', expected digits 0 to 9 and a to f");
  CHECK(refusal(R"(matrix(5,"84/00/10/00/08"))", 5) ==
        "matrix: row 0: shows key 5, expected keys below 5");
  CHECK(refusal("matrix(0,\"8\")", 1) ==
        "'matrix(0,\"8\")': column 8: keys: found '0', expected a whole number from 1 to "
        "4294967296");
  CHECK(refusal("matrix(4)", 4) == "'matrix(4)': column 1: matrix(keys,rows) needs rows");
  const MaskExpression large = matrix_mask(BitMatrix(16, 16));
  CHECK(large.shown() == R"(matrix(16,"0000/0000/0000/0000/0000/0000/0000/0000/…"))");
  CHECK(message_of<UsageError>([&] { large.bind_sequence(12); }) ==
        "'" + large.shown() + "' for a sequence of 12 tokens: the mask is for 16 × 16 tokens");
  CHECK(shown_layers({{2, large}, {1, parse_mask("causal")}}) == "2*" + large.shown() + ", causal");
}

}  // namespace
}  // namespace masque::mask
