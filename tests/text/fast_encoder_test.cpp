// The encoders for ids only against Hugging Face's tokenizers, and the cache of words.
#include "text/fast/fast_encoder.hpp"

#include <cstdlib>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "text/fast/word_cache.hpp"

namespace masque::text {
namespace {

std::unique_ptr<FastEncoder> encoder_of(const JsonValue& json, const std::string& path) {
  const Steps steps{nullptr, nullptr, make_model(*json.find("model"), path)};
  const auto flag = [&](const char* name) { return json.find(name)->text == "true"; };
  const std::string& kind = json.find("kind")->text;
  if (kind == "bert") {
    return make_bert_encoder(steps, {flag("clean_text"), flag("handle_chinese_chars"),
                                     flag("strip_accents"), flag("lowercase")});
  }
  if (kind == "byte_level") return make_byte_level_encoder(steps, flag("add_prefix_space"));
  REQUIRE(kind == "metaspace");
  const std::string& scheme = json.find("prepend_scheme")->text;
  return make_metaspace_encoder(steps, scheme == "always"  ? PrependMark::kAlways
                                       : scheme == "first" ? PrependMark::kFirst
                                                           : PrependMark::kNever);
}

TEST_CASE("fast encoders give the ids of Hugging Face's tokenizers, the second time too") {
  const char* other = std::getenv("MASQUE_TEXT_GOLDENS");
  const std::string path =
      (other != nullptr ? std::string(other) : MASQUE_TEST_DATA "/text") + "/encoders.json";
  const JsonValue cases = parse_json_file(InputFile::open(path).read_all(1U << 28), path);
  REQUIRE(cases.items.size() >= 12);
  std::size_t number = 0;
  for (const JsonValue& json : cases.items) {
    CAPTURE(number);
    ++number;
    const auto encoder = encoder_of(json, path);
    for (int time = 0; time < 2; ++time) {
      for (const JsonValue& pair : json.find("texts")->items) {
        CAPTURE(pair.items[0].text);
        std::vector<TokenId> ids;
        // The text ends where its memory does, for the sanitizers.
        const std::vector<char> exact(pair.items[0].text.begin(), pair.items[0].text.end());
        encoder->encode({exact.data(), exact.size()}, ids);
        std::vector<TokenId> wanted;
        for (const JsonValue& id : pair.items[1].items) {
          wanted.push_back(static_cast<TokenId>(id.integer().value()));
        }
        CHECK(ids == wanted);
      }
    }
  }
}

TEST_CASE("a cache of words forgets, but never errs") {
  WordCache cache;
  std::size_t known = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 60000; ++i) {
      const std::string word =
          std::string(static_cast<std::size_t>(i % 40), 'x') + std::to_string(i);
      const std::vector<TokenId> ids(static_cast<std::size_t>(i % 8), i);
      std::vector<TokenId> out;
      bool found = false;
      {
        IdSink sink(out);
        found = cache.append(word, sink);
      }
      CHECK(out == (found ? ids : std::vector<TokenId>{}));
      if (found) ++known;
      cache.put(word, ids);
    }
  }
  CHECK(known > 5000);
  // Zeros at the end of a word count.
  std::vector<TokenId> out;
  IdSink sink(out);
  cache.put("zero", std::vector<TokenId>{1});
  CHECK_FALSE(cache.append(std::string_view("zero\0", 5), sink));
  // No word, no ids.
  CHECK(cache.append("", sink));
}

}  // namespace
}  // namespace masque::text
