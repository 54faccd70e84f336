// Regular expressions of tokenizer.json against Hugging Face's tokenizers, and ones that are
// refused.
#include <span>
#include <thread>

#include <doctest/doctest.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "support/message.hpp"
#include "text/part_results.hpp"
#include "text/step/decoder.hpp"

namespace masque::text {
namespace {

/// A Split with an expression, which is JSON text between quotes.
Parts split_at(const std::string& regex) {
  return {"null", R"({"type":"Split","pattern":{"Regex":")" + regex +
                      R"("},"behavior":"Isolated","invert":false})"};
}

std::vector<std::string> words_of(const Parts& parts, std::string_view text) {
  std::vector<std::string> out;
  for (const AlignedText& word : parts.words(text)) out.push_back(word.text);
  return out;
}

TEST_CASE("expressions find what they find in the reference") {
  const std::string path = MASQUE_TEST_DATA "/text/patterns.texts.json";
  const JsonValue texts = parse_json_file(InputFile::open(path).read_all(1U << 20), path);
  REQUIRE(texts.items.size() > 30);
  for (const auto& row : test::read_table(MASQUE_TEST_DATA "/text/patterns.tsv", 3)) {
    CAPTURE(row[0]);
    CAPTURE(row[1]);
    const Parts parts(row[0], row[1]);
    const auto hash = make_xxh3();
    for (const JsonValue& text : texts.items) {
      std::vector<std::uint32_t> result;
      parts.result(text.text, result);
      hash->add(std::as_bytes(std::span(result)));
    }
    CHECK(hash->digest() == row[2]);
  }
}

TEST_CASE("a decoder replaces what an expression matches") {
  const auto decoded = [](const std::string& json, std::vector<std::string> tokens) {
    make_decoder(parse_json_file(json, "d"), "d")->decode(tokens);
    return tokens;
  };
  using Tokens = std::vector<std::string>;
  CHECK(decoded(R"j({"type":"Replace","pattern":{"Regex":"^\\s|(l)"},"content":"$1"})j",
                {" le l", "", "l"}) == Tokens{"$1$1e $1", "", "$1"});
  CHECK(decoded(R"({"type":"Replace","pattern":{"String":"_"},"content":" "})", {"_a_", "b"}) ==
        Tokens{" a ", "b"});
  CHECK(test::message_of<InputError>(
            [&] { decoded(R"({"type":"Replace","pattern":{"Regex":"(a"},"content":""})", {}); }) ==
        "d: decoder 'Replace': the regular expression '(a': end pattern with unmatched "
        "parenthesis");
}

TEST_CASE("empty matches advance by a character") {
  CHECK(words_of(split_at("x|"), "aé😀") == std::vector<std::string>{"a", "é", "😀"});
  CHECK(words_of(split_at("(?=b)"), "abb") == std::vector<std::string>{"a", "b", "b"});
}

TEST_CASE("an expression that would take for ever is given up") {
  const auto why = [](const std::string& regex, const std::string& text) {
    const Parts parts = split_at(regex);
    return test::message_of<InputError>([&] { parts.words(text); });
  };
  CHECK(test::contains(why("(a+)+b", std::string(40, 'a') + "c"),
                       "p: pre-tokenizer 'Split': the regular expression '(a+)+b': takes too long "
                       "on a text of 41 bytes (retry-limit-in-match over)"));
}

TEST_CASE("several threads share an expression") {
  const Parts parts = split_at("(\\\\w+)(?=\\\\s)|\\\\s+(?!\\\\S)");
  const std::string text = "some words and more  of them ";
  const auto wanted = words_of(parts, text);
  std::vector<std::size_t> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) count += words_of(parts, text) == wanted ? 0U : 1U;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<std::size_t>(4));
}

}  // namespace
}  // namespace masque::text
