#include "mask/expression.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/zoo.hpp"
#include "support/message.hpp"

namespace masque::mask {
namespace {

using test::contains;
using test::message_of;

TEST_CASE("the text has as few parentheses as it needs") {
  const auto text = [](const char* from) { return parse_mask(from).text(); };
  CHECK(text("causal") == "causal");
  CHECK(text(" ( causal ) ") == "causal");
  CHECK(text("causal&window(8)") == "causal & window(8)");
  CHECK(text("~(causal|tta)") == "~(causal | tta)");
  CHECK(text("(causal|tta)&full") == "(causal | tta) & full");
  CHECK(text("causal|(tta&full)") == "causal | tta & full");
  CHECK(text("causal|(tta|full)") == "causal | (tta | full)");
  CHECK(text("(causal|tta)|full") == "causal | tta | full");
  CHECK(text("~~tta") == "~~tta");
  CHECK(text("mae( 0.50 , seed = 3 )") == "mae(0.50,seed=3)");
  CHECK(text("keep(0,2,5-9)") == "keep(0,2,5-9)");
}

/// A random expression of the language.
std::string random_text(const RandomStream& stream, std::uint64_t& at, int depth) {
  const std::uint32_t pick = stream.block(at++)[0];
  static const char* const kNames[] = {
      "causal",           "tta",        "full",         "window(2)", "prefix(3)", "chunk(4)",
      "causal_window(5)", "mae(0.3,7)", "dilated(2,2)", "diagonal"};
  if (depth == 0 || pick % 4 == 0) return kNames[(pick >> 8) % 10];
  const std::string a = random_text(stream, at, depth - 1);
  if (pick % 4 == 1) return "~(" + a + ")";
  return "(" + a + (pick % 4 == 2 ? ")&(" : ")|(") + random_text(stream, at, depth - 1) + ")";
}

TEST_CASE("parsing the text of a mask gives the mask, and the same cells") {
  const RandomStream stream(1, "expressions");
  std::uint64_t at = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(stream, at, 5);
    CAPTURE(text);
    const MaskExpression parsed = parse_mask(text);
    const MaskExpression again = parse_mask(parsed.text());
    CHECK(again == parsed);
    CHECK(again.text() == parsed.text());
    if (i < 100) CHECK(to_bits(parsed.bind({9, 9})) == to_bits(again.bind({9, 9})));
  }
}

TEST_CASE("& binds tighter than |, ~ tightest") {
  const auto cells = [](const char* text) { return to_bits(parse_mask(text).bind({9, 9})); };
  CHECK(cells("causal | tta & window(1)") == cells("causal | (tta & window(1))"));
  CHECK_FALSE(cells("causal | tta & window(1)") == cells("(causal | tta) & window(1)"));
  CHECK(cells("~causal & window(1)") == cells("(~causal) & window(1)"));
}

TEST_CASE("what is wrong is said with its column") {
  const auto message = [](const char* text) {
    return message_of<UsageError>([&] { parse_mask(text); });
  };
  CHECK(message("causal & windw(8)") ==
        "'causal & windw(8)': column 10: no mask 'windw'; did you mean 'window'?");
  CHECK(message("") == "'': column 1: found the end, expected a mask");
  CHECK(message("causal &") == "'causal &': column 9: found the end, expected a mask");
  CHECK(message("(causal") == "'(causal': column 8: found the end, expected )");
  CHECK(message("causal)") == "'causal)': column 7: found ')', expected &, | or the end");
  CHECK(message("window") == "'window': column 1: window(w) needs w");
  CHECK(message("window(x)") ==
        "'window(x)': column 8: w: found 'x', expected a whole number from 0 to 4294967296");
  CHECK(message("window(1,2)") ==
        "'window(1,2)': column 10: too many arguments, expected window(w)");
  CHECK(message("mae(2)") == "'mae(2)': column 5: ratio: found '2', expected a number from 0 to 1");
  CHECK(message("mae(0.5,size=3)").starts_with("'mae(0.5,size=3)': column 9: no parameter 'size'"));
  CHECK(message("mae(0.5,ratio=0.5)")
            .starts_with("'mae(0.5,ratio=0.5)': column 9: ratio is given twice"));
  CHECK(message("keep(9-3)").starts_with("'keep(9-3)': column 6: keys: found '9-3'"));
  CHECK(message("chunk(0)")
            .starts_with("'chunk(0)': column 7: c: found '0', expected a whole number from 1"));
}

TEST_CASE("deep and long expressions are refused, not followed to the end of the stack") {
  const auto message = [](const std::string& text) {
    return message_of<UsageError>([&] { parse_mask(text); });
  };
  CHECK(contains(message(std::string(100000, '(') + "tta"), "nested deeper than 200"));
  CHECK(contains(message(std::string(100000, '~') + "tta"), "nested deeper than 200"));
  std::string chain = "tta";
  for (int i = 0; i < 5000; ++i) chain += "|tta";
  CHECK(contains(message(chain), "more than 1000 names"));
}

TEST_CASE("lists of layers") {
  const auto layers = parse_mask_layers("3*window(128), full , 2 * causal & tta");
  REQUIRE(layers.size() == 3);
  CHECK(layers[0].count == 3);
  CHECK(layers[0].mask.text() == "window(128)");
  CHECK(layers[1].count == 1);
  CHECK(layers[2].count == 2);
  CHECK(layers_text(layers) == "3*window(128), full, 2*causal & tta");
  CHECK(parse_mask_layers(layers_text(layers)) == layers);
  const auto message = [](const char* text) {
    return message_of<UsageError>([&] { parse_mask_layers(text); });
  };
  CHECK(contains(message("0*full"), "a number of layers from 1"));
  CHECK(contains(message("3 full"), "found 'f', expected *"));
  CHECK(contains(message("full,"), "column 6: found the end, expected a mask"));
}

TEST_CASE("masks by head") {
  const auto layers = parse_mask_layers("2*[causal, 3 * window(2)|tta,full] , full");
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].count == 2);
  REQUIRE(layers[0].mask.heads().size() == 5);
  CHECK(layers[0].mask.heads()[0].text() == "causal");
  CHECK(layers[0].mask.heads()[3].text() == "window(2) | tta");
  CHECK(layers[1].mask.heads().empty());
  CHECK(layers_text(layers) == "2*[causal, 3*window(2) | tta, full], full");
  CHECK(parse_mask_layers(layers_text(layers)) == layers);
  CHECK(layers[1].mask.any_head() == layers[1].mask);
  CHECK(parse_mask_layers("[2*causal, tta]").front().mask.any_head().text() == "causal | tta");
  CHECK(parse_mask_layers("[causal]") != parse_mask_layers("causal"));
  CHECK(parse_mask_layers("[document(2,3), full]").front().mask.own_lengths() == Lengths{5, 5});
  const auto open = parse_open_mask_layers("[tta_word, causal]").front().mask;
  CHECK(open.open());
  const std::vector<Index> words{1, 2};
  CHECK(open.closed(words, 0).text() == "[tta_word(1,2), causal]");
  CHECK(message_of<UsageError>([&] {
          layers[0].mask.bind({4, 4});
        }) == "masks that differ between heads, expected one mask for all heads");
  const auto message = [](const std::string& text) {
    return message_of<UsageError>([&] { parse_mask_layers(text); });
  };
  CHECK(contains(message("[]"), "column 2: found ']', expected a mask"));
  CHECK(contains(message("[full"), "column 6: found the end, expected &, |, a comma or ]"));
  CHECK(contains(message("[full] & causal"), "column 8: found '&', expected"));
  CHECK(contains(message("[[full]]"), "column 2: found '[', expected a mask"));
  CHECK(contains(message("~[full]"), "column 2: found '[', expected a mask"));
  CHECK(contains(message("[0*full]"), "a number of heads from 1"));
  CHECK(contains(message("[90000*full, 90000*causal]"), "more than 100000 heads"));
  CHECK(contains(message_of<UsageError>([&] { parse_mask("[full]"); }), "expected a mask"));
}

}  // namespace
}  // namespace masque::mask
