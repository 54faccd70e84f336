// Matrices find their way back to an expression that equals them.
#include "mask/identify.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "mask/bit_matrix.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {
namespace {

/// The bits alone: nothing of the expression is left.
Mask bits_of(const std::string& text, Lengths lengths) {
  return from_bits(to_bits(parse_mask(text).bind(lengths)));
}

void check_found(const std::string& text, Lengths lengths) {
  CAPTURE(text);
  const Mask mask = bits_of(text, lengths);
  const Identification found = identify_mask(mask);
  CAPTURE(found.expression.text());
  CHECK(found.exact());
  CHECK(to_bits(parse_mask(found.expression.text()).bind(lengths)) == to_bits(mask));
}

bool takes_seed_or_file(const MaskKind& kind) {
  return std::any_of(kind.parameters.begin(), kind.parameters.end(), [](const MaskParameter& p) {
    return p.kind == MaskParameterKind::kSeed || p.kind == MaskParameterKind::kFile;
  });
}

/// Two ways to give a name its numbers, at length n.
std::vector<std::string> numbered(const MaskKind& kind, Index n) {
  const auto is_count = [](const MaskParameter& p) { return p.kind == MaskParameterKind::kCount; };
  if (kind.parameters.size() > 2 ||
      !std::all_of(kind.parameters.begin(), kind.parameters.end(), is_count)) {
    return {};
  }
  const std::string name(kind.name);
  if (kind.parameters.empty()) return {name};
  std::vector<std::string> out;
  for (const Index first : {Index{3}, n / 3}) {
    if (kind.fits == Fits::kParts) {
      out.push_back(name + "(" + std::to_string(first) + "," + std::to_string(n - first) + ")");
    } else if (kind.parameters.size() == 1) {
      out.push_back(name + "(" + std::to_string(first) + ")");
    } else {
      out.push_back(name + "(" + std::to_string(first) + ",2)");
    }
  }
  return out;
}

TEST_CASE("every name that takes no seed or file is recovered") {
  for (const MaskKind* kind : mask_kinds()) {
    if (takes_seed_or_file(*kind)) continue;
    check_found(std::string(kind->example), {16, 16});
  }
  check_found("perm_content(seed=3)", {64, 64});
  check_found("perm_query(seed=4)", {17, 17});
  check_found("mae(0.4,1)", {64, 64});
  check_found("tta_word(3,1,1,9,2,48)", {64, 64});
  check_found("visible(57,4@2,3@6)", {64, 64});
}

TEST_CASE("every pair of names with up to two numbers is recovered") {
  std::vector<std::string> terms;
  constexpr Index kLength = 24;
  for (const MaskKind* kind : mask_kinds()) {
    for (std::string& text : numbered(*kind, kLength)) terms.push_back(std::move(text));
  }
  REQUIRE(terms.size() > 30);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    for (std::size_t j = (i * 7) % 5; j < i; j += 5) {  // every fifth pair
      check_found(terms[i] + " & " + terms[j], {kLength, kLength});
      check_found(terms[i] + " | " + terms[j], {kLength, kLength});
    }
  }
}

TEST_CASE("the simplest expression is named") {
  const auto found = [](const char* text, Index n) {
    return identify_mask(bits_of(text, {n, n})).expression.text();
  };
  CHECK(found("causal & document(3,5)", 8) == "causal & document(3,5)");
  CHECK(found("causal & tta", 9) == "strict_causal");
  CHECK(found("~full", 5) == "~full");
  CHECK(found("window(3) & causal", 20) == "causal_window(4)");
  CHECK(found("(causal | prefix(7)) & pad(60)", 64) == "pad(60) & unilm(7,57)");
  CHECK(found("window(2) & pad(9)", 12) == "window(2) & pad(9)");
}

TEST_CASE("longer masks and masks that are not square are recovered too") {
  for (const char* text : {"causal & document(300,400)", "causal_window(128)",
                           "chunk(100) | prefix(9)", "sinks(4,256)", "strided(50)", "tta"}) {
    check_found(text, {700, 700});
  }
  check_found("causal(6)", {10, 16});
  check_found("causal(6) & window(9)", {10, 16});
  check_found("keep(1,5-7)", {3, 12});
  check_found("full", {0, 0});
  check_found("full", {1, 1});
  check_found("full", {0, 7});
}

TEST_CASE("the nearest one says how it differs") {
  BitMatrix bits = to_bits(parse_mask("causal").bind({20, 20}));
  bits.set(4, 11);
  bits.set(15, 2, false);
  const Identification found = identify_mask(from_bits(bits));
  CHECK_FALSE(found.exact());
  CHECK(found.expression.text() == "causal");
  CHECK(found.difference.only_a == 1);
  CHECK(found.difference.only_b == 1);
  CHECK(found.difference.first->query == 4);
  CHECK(found.difference.first->key == 11);
}

}  // namespace
}  // namespace masque::mask
