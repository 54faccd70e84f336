// Whole tokenizers against Hugging Face's: scripts/goldens/text_tokenizers.py.
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {
namespace {

const std::string kTokenizerFolder = MASQUE_TEST_DATA "/text/tokenizers/";

std::string read(const std::string& path) { return InputFile::open(path).read_all(1U << 28); }

template <class T>
std::vector<T> numbers(const JsonValue& json) {
  std::vector<T> out;
  for (const JsonValue& item : json.items) out.push_back(static_cast<T>(item.integer().value()));
  return out;
}

std::vector<std::string> texts(const JsonValue& json) {
  std::vector<std::string> out;
  for (const JsonValue& item : json.items) out.push_back(item.text);
  return out;
}

std::vector<Span> spans_of(const JsonValue& json) {
  std::vector<Span> out;
  for (const JsonValue& item : json.items) {
    const auto pair = numbers<std::uint32_t>(item);
    out.push_back({pair[0], pair[1]});
  }
  return out;
}

bool flag(const JsonValue& json, std::string_view name) {
  const JsonValue* value = json.find(name);
  return value != nullptr && value->text == "true";
}

EncodeOptions options_of(const JsonValue& json) {
  EncodeOptions options;
  options.special = flag(json, "special");
  options.special_in_text = !flag(json, "no_special_in_text");
  if (const JsonValue* length = json.find("length")) {
    const std::string& strategy = json.find("strategy")->text;
    options.truncation = Truncation{static_cast<std::size_t>(length->integer().value()),
                                    strategy == "longest_first" ? TruncationStrategy::kLongestFirst
                                    : strategy == "only_first"  ? TruncationStrategy::kOnlyFirst
                                                                : TruncationStrategy::kOnlySecond,
                                    json.find("side")->text == "left"};
  }
  return options;
}

Encoding encode(const Tokenizer& tokenizer, const JsonValue& json, const EncodeOptions& options) {
  const std::string& text = json.find("text")->text;
  const JsonValue* pair = json.find("pair");
  return pair == nullptr ? tokenizer.encode(text, options)
                         : tokenizer.encode_pair(text, pair->text, options);
}

void check_case(const Tokenizer& tokenizer, const JsonValue& json) {
  const EncodeOptions options = options_of(json);
  if (flag(json, "fails")) {
    CHECK_THROWS_AS(encode(tokenizer, json, options), Error);
    return;
  }
  const Encoding got = encode(tokenizer, json, options);
  const auto ids = numbers<TokenId>(*json.find("ids"));
  CHECK(got.ids == ids);
  CHECK(got.tokens == texts(*json.find("tokens")));
  CHECK(got.offsets == spans_of(*json.find("offsets")));
  CHECK(got.type_ids == numbers<std::uint32_t>(*json.find("seg")));
  CHECK(got.special == numbers<std::uint8_t>(*json.find("mask")));
  CHECK(tokenizer.decode(ids, false) == json.find("decoded")->text);
  CHECK(tokenizer.decode(ids, true) == json.find("plain")->text);
  if (json.find("pair") != nullptr || options.truncation) return;
  std::vector<TokenId> fast;
  IdEncoder encoder = tokenizer.id_encoder(options);
  encoder.encode(json.find("text")->text, fast);
  CHECK(fast == ids);
}

TEST_CASE("tokenizers give the tokens, offsets and text of Hugging Face's") {
  for (const char* name :
       {"bert", "roberta", "gpt2", "unigram_always", "unigram_first", "unigram_never"}) {
    CAPTURE(name);
    const Tokenizer tokenizer = Tokenizer::open(kTokenizerFolder + name + ".json");
    const std::string path = kTokenizerFolder + name + ".cases.jsonl";
    const std::string all = read(path);
    std::size_t count = 0;
    for (std::size_t begin = 0; begin < all.size(); ++count) {
      const std::size_t end = all.find('\n', begin);
      const std::string line = all.substr(begin, end - begin);
      begin = end + 1;
      CAPTURE(line);
      check_case(tokenizer, parse_json_file(line, path));
    }
    CHECK(count > 100);
  }
}

TEST_CASE("ids of added tokens are given as Hugging Face gives them, and reported") {
  const Tokenizer tokenizer = Tokenizer::open(kTokenizerFolder + "gpt2.json");
  REQUIRE(tokenizer.warnings().size() == 1);
  CHECK(tokenizer.warnings()[0] ==
        "1 added tokens have other ids than in the file: 'the  ' has 275, not 800");
}

TEST_CASE("roles and beginnings of words") {
  const Tokenizer bert = Tokenizer::open(kTokenizerFolder + "bert.json");
  CHECK(bert.roles().mask == 4);
  CHECK(bert.roles().cls == 2);
  CHECK_FALSE(bert.roles().bos.has_value());
  CHECK(bert.begins_word(*bert.find("the")));
  CHECK_FALSE(bert.begins_word(*bert.find("##e")));
  CHECK(bert.is_special(4));
  const Tokenizer gpt2 = Tokenizer::open(kTokenizerFolder + "gpt2.json");
  CHECK(gpt2.begins_word(*gpt2.find("Ġthe")));
  CHECK_FALSE(gpt2.begins_word(*gpt2.find("he")));
  const Tokenizer unigram = Tokenizer::open(kTokenizerFolder + "unigram_always.json");
  CHECK(unigram.begins_word(*unigram.find("▁the")));
  CHECK_FALSE(unigram.begins_word(*unigram.find("er")));
}

}  // namespace
}  // namespace masque::text
