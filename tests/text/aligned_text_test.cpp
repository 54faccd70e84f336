// Where the bytes of a text come from.
#include "text/step/aligned_text.hpp"

#include <doctest/doctest.h>

namespace masque::text {
namespace {

TEST_CASE("bytes of a character come from the whole of it") {
  const AlignedText text = AlignedText::from("aé▁", 10);
  REQUIRE(text.origin.size() == 6);
  CHECK(text.origin[0] == Span{10, 11});
  for (const std::size_t i : {1U, 2U}) CHECK(text.origin[i] == Span{11, 13});
  for (const std::size_t i : {3U, 4U, 5U}) CHECK(text.origin[i] == Span{13, 16});
  const AlignedText part = text.part(1, 3);
  CHECK(part.text == "é");
  CHECK(part.span(0, 2) == Span{11, 13});
  CHECK(text.span(0, 6) == Span{10, 16});
}

TEST_CASE("inserted characters do not widen a span, and alone have an empty one") {
  AlignedText text = AlignedText::from("ab");
  text.text.insert(0, " ");
  text.origin.insert(text.origin.begin(), Span{0, 0});
  text.text += "!";
  text.origin.push_back({2, 2});
  CHECK(text.span(0, 1) == Span{0, 0});
  CHECK(text.span(3, 4) == Span{2, 2});
  CHECK(text.span(0, 2) == Span{0, 1});
  CHECK(text.span(0, 4) == Span{0, 2});
}

}  // namespace
}  // namespace masque::text
